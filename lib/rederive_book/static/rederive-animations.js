// Shows the animation behind a still, plays it while it is in view, and lets the reader pause it.
// An animation that lies in a file of its own is loaded when the reader comes near.
// Print, and a page without this script, keep the still.
"use strict";

(() => {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  // The still, with the link that some figures put around it.
  const behind = (still) => still?.closest("a") || still;

  function bringToLife(holder, still) {
    const svg = holder.querySelector("svg");
    const button = holder.querySelector("button");
    let wanted = !calm;
    let seen = false;

    function update() {
      if (wanted && seen) {
        svg.unpauseAnimations();
      } else {
        svg.pauseAnimations();
      }
      button.textContent = wanted ? "Pause" : "Play";
    }

    svg.setAttribute("aria-label", still?.alt || svg.getAttribute("aria-label"));
    button.addEventListener("click", () => {
      wanted = !wanted;
      update();
    });
    svg.setCurrentTime(0);
    update();
    new IntersectionObserver((entries) => {
      seen = entries[entries.length - 1].isIntersecting;
      update();
    }).observe(svg);
  }

  function load(holder, still) {
    const script = document.createElement("script");
    script.src = holder.dataset.script;
    script.addEventListener("load", () => {
      holder.firstElementChild.innerHTML = window.rederiveAnimations[holder.dataset.animation];
      bringToLife(holder, still);
    });
    script.addEventListener("error", () => {
      holder.hidden = true;
      behind(still)?.classList.remove("rederive-still");
    });
    document.head.append(script);
  }

  // The animation takes the place of its still at once, so that nothing moves when it arrives.
  function prepare(holder) {
    const still = holder.parentElement.querySelector("img");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "rederive-play";
    button.textContent = calm ? "Play" : "Pause";
    holder.append(button);
    holder.hidden = false;
    behind(still)?.classList.add("rederive-still");
    if (!holder.dataset.script) {
      bringToLife(holder, still);
      return;
    }
    new IntersectionObserver(
      (entries, observer) => {
        if (entries[entries.length - 1].isIntersecting) {
          observer.disconnect();
          load(holder, still);
        }
      },
      { rootMargin: "600px 0px" },
    ).observe(holder);
  }

  for (const holder of document.querySelectorAll(".rederive-animation")) {
    prepare(holder);
  }
})();
