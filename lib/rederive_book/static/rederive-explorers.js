// Wakes an explorer up when it comes near the screen: fetches its scripts, in their order.
"use strict";

(() => {
  const base = new URL("explorers/", document.currentScript.src);
  const fetched = new Map();

  function fetchScript(name) {
    if (!fetched.has(name)) {
      fetched.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL(name, base).href;
        script.addEventListener("load", resolve);
        script.addEventListener("error", () => reject(new Error(`no ${script.src}`)));
        document.head.append(script);
      }));
    }
    return fetched.get(name);
  }

  async function wake(root) {
    for (const name of root.dataset.scripts.split(" ")) {
      await fetchScript(name);
    }
    window.Rederive.core.wake(root);
  }

  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watch.unobserve(entry.target);
        wake(entry.target);
      }
    }
  }, { rootMargin: "400px" });

  for (const root of document.querySelectorAll(".rx[data-explorer]")) {
    watch.observe(root);
  }
})();
