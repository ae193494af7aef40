// What all explorers share: their state, controls, numbers, and the life of the stage.
// An explorer registers a function mount(api) that returns update(state).
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});
  book.explorers = book.explorers || {}; // pure functions, by the name of the explorer
  const mounts = new Map();

  // A number as the table shows it; the same as number_text in rederive_book/explorers.py.
  function numberText(value) {
    if (value === null || value === undefined || Number.isNaN(value)) {
      return "none";
    }
    if (typeof value === "string") {
      return value;
    }
    if (value === 0) {
      return "0";
    }
    if (!Number.isFinite(value)) {
      return value > 0 ? "∞" : "−∞";
    }
    const size = Math.abs(value);
    let text;
    if (size >= 1e-3 && size < 1e5) {
      text = value.toFixed(Math.max(0, 3 - Math.floor(Math.log10(size))));
      text = text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
    } else {
      const [mantissa, power] = value.toExponential(3).split("e");
      text = `${mantissa.replace(/0+$/, "").replace(/\.$/, "")}e${Number(power)}`;
    }
    return text.replaceAll("-", "−");
  }

  // Sliders on a logarithmic scale show round values: three digits.
  function fromPosition(control, position) {
    const value = control.scale === "log" ? Number((10 ** position).toPrecision(3)) : position;
    return Math.min(control.high, Math.max(control.low, value));
  }

  function toPosition(control, value) {
    return control.scale === "log" ? Math.log10(value) : value;
  }

  function wake(root) {
    const name = root.dataset.explorer;
    const settings = JSON.parse(root.dataset.settings);
    const controls = new Map(settings.controls.map((control) => [control.name, control]));
    const state = {};
    const stage = root.querySelector(".rx-stage");
    const cells = new Map();
    let update = null;
    let waiting = false;

    for (const cell of root.querySelectorAll("[data-number]")) {
      cells.set(cell.dataset.number, cell);
    }
    const inputs = [...root.querySelectorAll("[data-control]")];

    // Puts the controls where the state is.
    function show() {
      for (const input of inputs) {
        const control = controls.get(input.dataset.control);
        const value = state[control.name];
        if (input.type === "radio") {
          input.checked = input.value === value;
          continue;
        }
        if (control.most) {
          input.max = toPosition(control, state[control.most]);
        }
        const text = numberText(value);
        input.value = toPosition(control, value);
        input.setAttribute("aria-valuetext", text);
        input.nextElementSibling.textContent = text;
      }
    }

    function redraw() {
      waiting = false;
      if (update) {
        update(state);
      }
    }

    // Draws before the next picture of the screen, once however many moves there were.
    function ask() {
      if (!waiting) {
        waiting = true;
        requestAnimationFrame(redraw);
      }
    }

    function set(changes) {
      for (const [key, value] of Object.entries(changes)) {
        const control = controls.get(key);
        state[key] = typeof value === "number" && "low" in control
          ? Math.min(control.high, Math.max(control.low, value)) : value;
      }
      for (const control of controls.values()) {
        if (control.most) {
          state[control.name] = Math.min(state[control.name], state[control.most]);
        }
      }
      show();
      ask();
    }

    // Sets numbers of the table: key to number, text or null.
    function numbers(values) {
      for (const [key, value] of Object.entries(values)) {
        const cell = cells.get(key);
        if (cell) {
          const text = numberText(value);
          if (cell.textContent !== text) {
            cell.firstChild.data = text;
          }
        }
      }
    }

    // A colour of the theme, for those who draw on a canvas: colour("theory").
    function colour(key) {
      return getComputedStyle(root).getPropertyValue(`--rx-${key}`).trim();
    }

    for (const control of settings.controls) {
      state[control.name] = control.value;
    }
    const size = { width: stage.clientWidth, height: stage.clientHeight };
    const api = { size, root, stage, state, set, numbers, colour, redraw: ask, draw: redraw, numberText };
    // A plot in the stage, in the place of the still; see plot.js.
    api.plot = () => book.plot(api);
    const still = [...stage.children];
    update = mounts.get(name)(api);
    for (const picture of still) {
      picture.remove();
    }
    for (const input of inputs) {
      input.disabled = false;
      input.addEventListener("input", () => {
        const control = controls.get(input.dataset.control);
        set({ [control.name]: input.type === "radio"
          ? input.value : fromPosition(control, Number(input.value)) });
      });
    }
    for (const button of root.querySelectorAll("[data-preset]")) {
      button.disabled = false;
      button.addEventListener("click", () => set(settings.presets[Number(button.dataset.preset)]));
    }
    new ResizeObserver(([entry]) => {
      const { width, height } = entry.contentRect;
      if (width !== size.width || height !== size.height) {
        Object.assign(size, { width, height });
        ask();
      }
    }).observe(stage);
    // Whoever draws on a canvas must draw again when light turns dark.
    new MutationObserver(ask).observe(document.documentElement, {
      attributes: true, attributeFilter: ["data-theme"],
    });
    show();
    redraw();
    root.explorer = api; // for tests, and for the curious
    root.dataset.awake = "";
  }

  book.core = {
    numberText,
    wake,
    // register("name", (api) => (state) => { … }): see rederive_book/explorers.py.
    register: (name, mount) => mounts.set(name, mount),
  };
})();
