// Shows the statement behind a reference to a theorem, or behind a box of the map: when the pointer
// rests on it, when it has the focus, or on a long press. A tap and a click follow the link as ever.
// Without this script, and on a page without statements, references are plain links.
"use strict";

(() => {
  const REST = 250; // ms until a statement comes, or goes
  const PRESS = 500; // ms that make a press a long one
  const made = new Map();
  const carried = document.getElementById("rederive-statements");

  let pop = null;
  let shown = null; // the link whose statement is shown
  let waiting = 0;
  let pressing = 0;
  let pressed = false; // the click that ends a long press is not meant

  // The link to a theorem that holds an element: in the text, or a box of the map.
  function linkOf(element) {
    const link = element instanceof Element ? element.closest("a[href*='#']") : null;
    return link && !link.matches(".headerlink") && sourceOf(labelOf(link)) ? link : null;
  }

  function labelOf(link) {
    return decodeURIComponent(link.getAttribute("href").split("#")[1]);
  }

  function sourceOf(label) {
    const far = carried?.content.querySelector(`[data-for="${CSS.escape(label)}"]`);
    const near = document.getElementById(label);
    return far || (near?.matches("div.proof") ? near : null);
  }

  // The statement for the popover; typeset once, by the time it is shown.
  function statementOf(label) {
    if (!made.has(label)) {
      const copy = document.createElement("div");
      copy.append(...sourceOf(label).cloneNode(true).childNodes);
      for (const element of copy.querySelectorAll("[id]")) {
        element.removeAttribute("id");
      }
      for (const element of copy.querySelectorAll(".headerlink, button")) {
        element.remove();
      }
      for (const link of copy.querySelectorAll("a")) {
        link.replaceWith(...link.childNodes);
      }
      made.set(label, copy);
    }
    return made.get(label);
  }

  async function typeset(copy) {
    const raw = copy.querySelector(".math:not(:has(mjx-container))");
    if (raw && window.MathJax?.startup?.promise) {
      await window.MathJax.startup.promise;
      await window.MathJax.typesetPromise([copy]);
    }
  }

  function place(link) {
    const at = link.getBoundingClientRect();
    const margin = 8;
    const width = document.documentElement.clientWidth;
    pop.style.maxWidth = `${Math.min(560, width - 2 * margin)}px`;
    const { offsetWidth, offsetHeight } = pop;
    const left = Math.max(margin, Math.min(at.left, width - offsetWidth - margin));
    const below = at.bottom + margin + offsetHeight <= window.innerHeight;
    const above = !below && at.top - margin - offsetHeight >= 0;
    const top = above ? at.top - margin - offsetHeight : at.bottom + margin;
    pop.style.left = `${left + window.scrollX}px`;
    pop.style.top = `${top + window.scrollY}px`;
  }

  function build() {
    pop = document.createElement("div");
    pop.id = "rederive-statement";
    pop.className = "rederive-statement";
    pop.setAttribute("role", "tooltip");
    pop.hidden = true;
    pop.addEventListener("pointerenter", () => clearTimeout(waiting));
    pop.addEventListener("pointerleave", hideSoon);
    document.body.append(pop);
  }

  async function show(link) {
    clearTimeout(waiting);
    if (shown === link) {
      return;
    }
    hide();
    if (!pop) {
      build();
    }
    shown = link;
    const copy = statementOf(labelOf(link));
    pop.replaceChildren(copy);
    pop.scrollTop = 0;
    pop.hidden = false;
    link.setAttribute("aria-describedby", pop.id);
    light(link, true);
    place(link);
    await typeset(copy);
    if (shown === link) {
      place(link);
    }
  }

  function hide() {
    clearTimeout(waiting);
    if (shown) {
      shown.removeAttribute("aria-describedby");
      light(shown, false);
      pop.hidden = true;
      shown = null;
    }
  }

  function hideSoon() {
    clearTimeout(waiting);
    waiting = setTimeout(hide, REST);
  }

  // On the map, the arrows that begin or end at a box stand out together with it.
  function light(link, on) {
    const { claim } = link.dataset;
    if (claim) {
      for (const arrow of link.ownerSVGElement.querySelectorAll(".rederive-arrow")) {
        const touches = arrow.dataset.from === claim || arrow.dataset.to === claim;
        arrow.classList.toggle("rederive-lit", on && touches);
      }
    }
  }

  document.addEventListener("pointerover", (event) => {
    const link = event.pointerType === "touch" ? null : linkOf(event.target);
    if (link) {
      clearTimeout(waiting);
      waiting = setTimeout(show, REST, link);
    }
  });
  document.addEventListener("pointerout", (event) => {
    if (event.pointerType !== "touch" && linkOf(event.target)) {
      hideSoon();
    }
  });
  document.addEventListener("focusin", (event) => {
    const link = linkOf(event.target);
    if (link?.matches(":focus-visible")) {
      show(link);
    }
  });
  document.addEventListener("focusout", (event) => {
    if (event.target === shown) {
      hide();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hide();
    }
  });

  document.addEventListener("pointerdown", (event) => {
    clearTimeout(pressing);
    pressed = false;
    if (pop && !pop.contains(event.target)) {
      hide();
    }
    const link = event.pointerType === "touch" ? linkOf(event.target) : null;
    if (link) {
      pressing = setTimeout(() => {
        pressed = true;
        show(link);
      }, PRESS);
    }
  });
  for (const name of ["pointerup", "pointercancel", "scroll"]) {
    document.addEventListener(name, () => clearTimeout(pressing), { passive: true });
  }
  for (const name of ["click", "contextmenu"]) {
    document.addEventListener(name, (event) => {
      if (pressed && event.target instanceof Element && event.target.closest("a") === shown) {
        event.preventDefault();
      }
    });
  }

  // The title of a box is for those without this script: a second bubble would cover the first.
  for (const box of document.querySelectorAll("a.rederive-box")) {
    const title = box.querySelector("title");
    box.setAttribute("aria-label", title.textContent);
    title.remove();
  }
})();
