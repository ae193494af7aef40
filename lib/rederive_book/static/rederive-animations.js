// Shows the animation behind a still, plays it while it is in view, and lets the reader pause it.
// Print, and a page without this script, keep the still.
"use strict";

(() => {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  function bringToLife(holder) {
    const svg = holder.querySelector("svg");
    const button = document.createElement("button");
    let wanted = !calm;
    let seen = false;
    button.type = "button";
    button.className = "rederive-play";

    function update() {
      if (wanted && seen) {
        svg.unpauseAnimations();
      } else {
        svg.pauseAnimations();
      }
      button.textContent = wanted ? "Pause" : "Play";
    }

    button.addEventListener("click", () => {
      wanted = !wanted;
      update();
    });
    holder.append(button);
    holder.hidden = false;
    const still = holder.parentElement.querySelector("img");
    if (still) {
      still.classList.add("rederive-still");
    }
    svg.setCurrentTime(0);
    update();
    new IntersectionObserver((entries) => {
      seen = entries[entries.length - 1].isIntersecting;
      update();
    }).observe(svg);
  }

  for (const holder of document.querySelectorAll(".rederive-animation")) {
    bringToLife(holder);
  }
})();
