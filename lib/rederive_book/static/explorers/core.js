// What all explorers share: their state, controls, numbers, and the life of the stage.
// An explorer registers a function mount(api) that returns update(state).
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});
  book.explorers = book.explorers || {}; // pure functions, by the name of the explorer
  const mounts = new Map();
  const REST = 400; // milliseconds after which a move is over, and stands in the address

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

  // What the reader set, as the end of an address: "delta=0.5,model=chain".
  function toAddress(controls, state) {
    return controls.map(({ name }) => {
      const value = state[name];
      return `${name}=${typeof value === "number" ? Number(value.toPrecision(12)) : value}`;
    }).join(",");
  }

  // The numbers and words in the end of an address that the controls can take: numbers within the
  // ends of their slider and, but for logarithmic ones, on its steps. Whatever else is there is no
  // concern of ours.
  function fromAddress(controls, words, text) {
    const values = {};
    for (const part of text.split(",")) {
      const [name, written, ...rest] = part.split("=").map((piece) => piece.trim());
      const control = controls.find((one) => one.name === name);
      if (!control || !written || rest.length) {
        continue;
      }
      if (!("low" in control)) {
        if (words(name).includes(written)) {
          values[name] = written;
        }
        continue;
      }
      const number = Number(written.replace("\u2212", "-"));
      if (Number.isFinite(number)) {
        const within = Math.min(control.high, Math.max(control.low, number));
        const step = control.low + Math.round((within - control.low) / control.step) * control.step;
        values[name] = control.scale === "log" ? within
          : Math.min(control.high, Number(step.toPrecision(12)));
      }
    }
    return values;
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
    let resting = 0;

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

    // Puts the state into the address once the reader's hand rests, so that it can be shared.
    function remember() {
      clearTimeout(resting);
      resting = setTimeout(() => {
        const values = toAddress(settings.controls, state);
        history.replaceState(history.state, "", `#explorer-${name}:${values}`);
      }, REST);
    }

    // Takes the state from the end of an address.
    function read(text) {
      const words = (key) => inputs.filter((input) => input.dataset.control === key)
        .map((input) => input.value);
      set(fromAddress(settings.controls, words, text));
      clearTimeout(resting);
    }

    function set(changes) {
      remember();
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
    const api = { size, root, stage, state, set, read, numbers, colour, redraw: ask, draw: redraw, numberText };
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
    // Whoever follows a link has left: the address is that of the link.
    window.addEventListener("hashchange", () => clearTimeout(resting));
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
    fromAddress,
    numberText,
    toAddress,
    wake,
    // register("name", (api) => (state) => { … }): see rederive_book/explorers.py.
    register: (name, mount) => mounts.set(name, mount),
  };
})();
