// Sets the formulas that are in view first, shows the text, and sets the others piece by piece, so
// that the page answers meanwhile and nothing jumps. Runs before MathJax and is called by it.
"use strict";

(() => {
  const PIECE = 60; // formulas at a time
  const config = window.MathJax;
  if (!config || config.version) {
    return;
  }
  const show = () => document.documentElement.classList.add("rederive-set");

  // The columns of a table move with any of its formulas: all of them count as near.
  function isNear(element) {
    const { top, bottom } = (element.closest("table") || element).getBoundingClientRect();
    return bottom > -0.5 * window.innerHeight && top < 1.5 * window.innerHeight;
  }

  // A formula that is wider than its line can be pushed aside. Where it goes on it is marked, since
  // the part that is seen may read as a whole.
  const PUSHED = ".bd-article span.math, .bd-article div.math mjx-container";
  function mark(element) {
    const hidden = element.scrollWidth - element.clientWidth - Math.ceil(element.scrollLeft);
    element.classList.toggle("rederive-goes-on", hidden > 1);
  }
  const markAll = () => document.querySelectorAll(PUSHED).forEach(mark);
  const markPushed = ({ target }) => target instanceof Element && target.matches(PUSHED) && mark(target);
  document.addEventListener("scroll", markPushed, { capture: true, passive: true });
  document.addEventListener("toggle", markAll, { capture: true }); // a fold was opened
  window.addEventListener("resize", markAll);

  // A formula inside a closed fold has no place; it is set with the others.
  async function setAll() {
    const { typesetPromise } = window.MathJax;
    let waiting = [...document.querySelectorAll(".bd-article .math")];
    while (waiting.length) {
      const near = waiting.filter((element) => element.offsetParent && isNear(element));
      if (!near.length) {
        show();
      }
      const piece = new Set(near.length ? near : waiting.slice(0, PIECE));
      await typesetPromise([...piece]);
      await new Promise((next) => setTimeout(next));
      waiting = waiting.filter((element) => !piece.has(element));
    }
    show();
    // What else holds a formula: names in the lists beside the text. A formula that is set once
    // more would be set inside the copy that screen readers get.
    const bare = (element) => !element.querySelector("mjx-container");
    await typesetPromise([...document.querySelectorAll(".math")].filter(bare));
  }

  // Everywhere of one size beside the text around it. Measured at each formula, that size would be
  // rounded differently in small boxes and in lines that wait.
  config.chtml = { ...config.chtml, matchFontHeight: false, scale: 1.2 };
  config.startup = {
    ...config.startup,
    pageReady: () => setAll().finally(show).finally(markAll),
  };
  document.querySelector("script[src*='mathjax/']")?.addEventListener("error", () => {
    document.documentElement.classList.add("rederive-plain");
    show();
  });
})();
