// The picture of the principal angles: dials with handles above, below the covariance against the
// diversity index, on a logarithmic axis, inside the borders that the index alone allows.
"use strict";

(() => {
  const { core, explorers } = window.Rederive;
  const math = explorers["principal-angles"];
  const SVG = "http://www.w3.org/2000/svg";
  const SHARE = 0.42; // of the height that the dials take
  const TICKS = [1, 2, 5, 10, 20, 50, 100, 1000, 1e5, 1e10];

  function make(parent, name, attributes) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, value);
    }
    parent.append(element);
    return element;
  }

  /** One dial: a fixed ray for the first head, and a ray with a handle for the second. */
  function makeDial(svg, api, j) {
    const name = `theta${j}`;
    const words = `angle ${j} between the two heads, in degrees`;
    const group = make(svg, "g", {});
    const arc = make(group, "path", { class: "rx-axis" });
    const first = make(group, "path", { class: "rx-line rx-ink" });
    const second = make(group, "path", { class: "rx-line rx-theory" });
    const label = make(group, "text", { "text-anchor": "middle" });
    const handle = make(group, "g", {
      role: "slider",
      tabindex: 0,
      "aria-label": words,
      "aria-valuemin": 0,
      "aria-valuemax": 90,
    });
    handle.style.cursor = "grab";
    const reach = make(handle, "circle", { r: 22, fill: "transparent" }); // room for a finger
    const knob = make(handle, "circle", { r: 11, class: "rx-dot rx-theory" });
    let place = null;

    function follow(event) {
      const box = svg.getBoundingClientRect();
      const across = event.clientX - box.left - place.x;
      const up = place.y - (event.clientY - box.top);
      const degrees = (Math.atan2(up, across) * 180) / Math.PI;
      // beyond the quarter: the nearer end
      const within = degrees < -135 || degrees > 90 ? 90 : Math.max(0, degrees);
      api.set({ [name]: Math.round(within) });
    }
    // a finger on a handle must not scroll; inside a picture touch-action does not see to that
    handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      event.preventDefault();
    });
    handle.addEventListener("pointermove", (event) => {
      if (handle.hasPointerCapture(event.pointerId)) {
        follow(event);
      }
    });
    handle.addEventListener("keydown", (event) => {
      const value = api.state[name];
      const moves = {
        ArrowUp: value + 1, ArrowRight: value + 1, ArrowDown: value - 1, ArrowLeft: value - 1,
        PageUp: value + 10, PageDown: value - 10, Home: 0, End: 90,
      };
      if (event.key in moves) {
        api.set({ [name]: moves[event.key] });
        event.preventDefault();
      }
    });

    return (state, width, height) => {
      const shown = j <= state.k;
      group.style.display = shown ? "" : "none";
      if (!shown) {
        return;
      }
      const column = width / state.k;
      const r = Math.min(column - 36, SHARE * height - 48);
      const x = (j - 1) * column + (column - r) / 2;
      const y = r + 16;
      place = { x, y };
      const c = math.cosine(state[name]);
      const [across, up] = [r * c, r * Math.sqrt(1 - c * c)];
      arc.setAttribute("d", `M${x + r} ${y}A${r} ${r} 0 0 0 ${x} ${y - r}`);
      first.setAttribute("d", `M${x} ${y}h${r}`);
      second.setAttribute("d", `M${x} ${y}l${across} ${-up}`);
      for (const circle of [reach, knob]) {
        circle.setAttribute("cx", x + across);
        circle.setAttribute("cy", y - up);
      }
      handle.setAttribute("aria-valuenow", state[name]);
      handle.setAttribute("aria-valuetext", `${state[name]} degrees`);
      label.setAttribute("x", x + r / 2);
      label.setAttribute("y", y + 20);
      const text = `θ${"₁₂₃₄"[j - 1]} = ${state[name]}°`;
      if (label.textContent !== text) {
        label.textContent = text; // letters are dear: only those that changed
      }
    };
  }

  function drawPlot(plot, state, numbers) {
    const levels = [numbers.variance, numbers.average, numbers.covariance];
    const known = levels.filter((value) => typeof value === "number");
    const top = 1.15 * Math.log(Math.max(1.5, ...known));
    plot.begin().frame({
      x: [0, 1], y: [0, top], top: SHARE, yTicks: false, xLabel: "diversity index", yLabel: "n·C/σ²",
    });
    let last = -Infinity;
    for (const value of TICKS) {
      const at = Math.log(value);
      if (at < top && at - last > top / 8) {
        plot.text(0, at, core.numberText(value), "rx-small", "end", -7, 4);
        last = at;
      }
    }
    if (numbers.lower === null) {
      plot.text(0.5, 0.94 * top, "one head alone diverges: no borders", "rx-small", "middle");
    } else {
      const grid = Array.from({ length: 41 }, (_, i) => i / 40);
      const beta = state.kappa * math.inverseRoot(state.k);
      const bounds = grid.map((x) => math.envelope(x, state.k, beta).map(Math.log));
      plot.line(grid, bounds.map(([low]) => low), "rx-line rx-theory");
      plot.line(grid, bounds.map(([, high]) => high), "rx-line rx-theory");
    }
    ["rx-dash rx-second", "rx-fine rx-third"].forEach((marks, i) => {
      if (typeof levels[i] === "number") {
        plot.line([0, 1], [Math.log(levels[i]), Math.log(levels[i])], marks);
      }
    });
    if (typeof numbers.covariance === "number") {
      plot.dot(numbers.index, Math.log(numbers.covariance), "rx-dot rx-measured", 7);
    } else {
      plot.text(0.5, 0.5 * top, "C diverges", "rx-word rx-measured", "middle");
    }
    plot.end();
  }

  core.register("principal-angles", (api) => {
    const plot = api.plot();
    const svg = make(api.stage, "svg", {
      class: "rx-live", role: "group", "aria-label": "principal angles",
    });
    const dials = [1, 2, 3, 4].map((j) => makeDial(svg, api, j));
    const sliders = [3, 4].map((j) => api.root.querySelector(`[data-control="theta${j}"]`));
    return (state) => {
      const numbers = math.evaluate(state);
      const { width, height } = api.size;
      drawPlot(plot, state, numbers);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      for (const dial of dials) {
        dial(state, width, height);
      }
      sliders.forEach((slider, i) => {
        slider.disabled = state.k < i + 3; // angles that two heads of this dimension do not have
      });
      api.numbers(numbers);
    };
  });
})();
