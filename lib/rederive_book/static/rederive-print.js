// Paper is light: a page that is read in the dark is printed in the colours of the light one.
"use strict";

(() => {
  const root = document.documentElement;
  let before = null;

  window.addEventListener("beforeprint", () => {
    before = before || root.dataset.theme || "light";
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    root.dataset.theme = before;
    before = null;
  });
})();
