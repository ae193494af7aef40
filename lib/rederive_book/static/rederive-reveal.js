// Opens the fold around the place that an address names. Browsers of today do so themselves.
"use strict";

(() => {
  function reveal() {
    let name = "";
    try {
      name = decodeURIComponent(window.location.hash.slice(1));
    } catch {
      return; // an address that no page has
    }
    const place = name ? document.getElementById(name) : null;
    let opened = false;
    for (let at = place?.closest("details"); at; at = at.parentElement.closest("details")) {
      opened ||= !at.open;
      at.open = true;
    }
    if (opened) {
      place.scrollIntoView();
    }
  }

  window.addEventListener("hashchange", reveal);
  // A second click on the same link changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a.rederive-to-code") : null;
    if (link && link.hash === window.location.hash) {
      reveal();
    }
  });
  reveal();
})();
