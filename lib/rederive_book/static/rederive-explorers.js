// Wakes an explorer up when it comes near the screen: fetches its scripts, in their order. An
// address may end in what a reader set: "#explorer-free-product:delta=0.5,gamma=0.25" leads to the
// explorer of that name (or in the figure of that anchor) and puts its controls there. Addresses of
// any other form are not touched.
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

  // The explorer that the address calls, and what it says of its controls; null for plain anchors.
  function called() {
    let text = "";
    try {
      text = decodeURIComponent(window.location.hash.slice(1));
    } catch {
      return null; // not an address that we wrote
    }
    const [place, ...rest] = text.split(":");
    const figure = rest.length ? document.getElementById(place) : null;
    const root = (figure || document).querySelector(figure ? ".rx[data-explorer]"
      : `.rx[data-explorer="${CSS.escape(place.replace(/^explorer-/, ""))}"]`);
    return rest.length && root ? { root, values: rest.join(":") } : null;
  }

  // Brings the explorer on the screen, which wakes it up, and sets it if it is awake already.
  function answer() {
    const call = called();
    if (call) {
      (call.root.closest("figure") || call.root).scrollIntoView();
      call.root.explorer?.read(call.values);
    }
  }

  async function wake(root) {
    for (const name of root.dataset.scripts.split(" ")) {
      await fetchScript(name);
    }
    window.Rederive.core.wake(root);
    const call = called();
    if (call?.root === root) {
      root.explorer.read(call.values);
    }
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
  answer();
  window.addEventListener("load", answer);
  window.addEventListener("hashchange", answer);
})();
