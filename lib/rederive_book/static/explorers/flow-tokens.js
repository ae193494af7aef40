// The explorer of flows at work: its clock, its buttons, and the hand that turns the sphere.
"use strict";

(() => {
  const { core, explorers } = window.Rederive;
  const flow = explorers["flow-tokens"];
  const DT = 1 / 32; // of a step, in the time of the tokens
  const WAY = 40; // steps that the drawn way of a token holds
  const LONGEST = 6000; // steps that the curve of the energy holds
  const BUSY = 9; // milliseconds of a picture that steps may take
  const VIEWS = { circle: [50, 30], sphere: [20, 30] };
  const NAMES = ["face", "ink", "muted", "faint", "rejected", "theory", "measured", "second", "third",
    "fourth", "fifth"];

  /** A run with what is drawn of its past. */
  function film(state) {
    const run = flow.start(state, DT);
    const groups = Array.from({ length: state.n }, (_, i) =>
      flow.group(state.start, i, state.n, state.surface === "circle"));
    const scene = {
      x: run.x, groups, circle: state.surface === "circle", origin: run.now.energy,
      times: [0], energies: [run.now.energy], ways: groups.map((_, i) => [...run.x.slice(3 * i, 3 * i + 3)]),
    };
    function advance() {
      run.advance();
      scene.x = run.x;
      scene.times.push(run.time);
      scene.energies.push(run.now.energy);
      if (scene.times.length > LONGEST) {
        scene.times.shift();
        scene.energies.shift();
      }
      scene.ways.forEach((way, i) => {
        way.push(run.x[3 * i], run.x[3 * i + 1], run.x[3 * i + 2]);
        if (way.length > 3 * WAY) {
          way.splice(0, 3);
        }
      });
    }
    return { scene, advance, readings: () => flow.readings(run, scene.origin) };
  }

  function makeCanvas(api) {
    const canvas = document.createElement("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label",
      `${api.stage.dataset.seen} The arrow keys and a sidewards drag turn the sphere.`);
    // a finger that moves up or down scrolls the page, sidewards it turns the sphere
    canvas.style.touchAction = "pan-y";
    canvas.style.cursor = "grab";
    api.stage.append(canvas);
    return canvas;
  }

  /** The view, turned by drag and by arrow keys. */
  function makeView(canvas, redraw) {
    const view = { elevation: VIEWS.circle[0], azimuth: VIEWS.circle[1] };
    let last = null;
    function turn(across, up) {
      view.azimuth = (view.azimuth + across) % 360;
      view.elevation = Math.min(90, Math.max(-90, view.elevation + up));
      redraw();
    }
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = [event.clientX, event.clientY];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (last && canvas.hasPointerCapture(event.pointerId)) {
        turn((last[0] - event.clientX) / 2, (event.clientY - last[1]) / 2);
        last = [event.clientX, event.clientY];
      }
    });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] };
      if (event.key in moves) {
        turn(...moves[event.key]);
        event.preventDefault();
      }
    });
    return view;
  }

  /** What decides a run: everything but the speed at which it is shown. */
  const keyOf = (state) => JSON.stringify({ ...state, speed: 0 });

  core.register("flow-tokens", (api) => {
    const canvas = makeCanvas(api);
    const context = canvas.getContext("2d");
    const view = makeView(canvas, api.redraw);
    const buttons = {};
    for (const button of api.root.querySelectorAll("[data-do]")) {
      button.disabled = false;
      buttons[button.dataset.do] = button;
    }
    const slider = (name) => api.root.querySelector(`[data-control="${name}"]`);
    const [count, spread, seed] = ["count", "spread", "seed"].map(slider);
    let playing = !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    let seen = false;
    let looping = false;
    let shown = null; // the film, and the key of its state
    const colours = {};
    let [before, owed] = [0, 0];

    function paint() {
      const { width, height } = api.size;
      const ratio = window.devicePixelRatio || 1;
      const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (canvas.width !== w || canvas.height !== h) {
        [canvas.width, canvas.height] = [w, h];
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      flow.draw(context, width, height, view, colours, shown.film.scene, core.numberText);
      api.numbers(shown.film.readings());
    }

    function dip() {
      for (const name of NAMES) {
        colours[name] = api.colour(name);
      }
    }

    function restart(state) {
      shown = { key: keyOf(state), film: film(state) };
      owed = 0;
    }

    function frame(now) {
      looping = playing && seen;
      if (!looping) {
        return;
      }
      owed += (Math.min(now - before, 50) / 1000) * api.state.speed;
      before = now;
      const started = performance.now();
      while (owed >= DT && performance.now() - started < BUSY) {
        shown.film.advance();
        owed -= DT;
      }
      owed = Math.min(owed, DT); // a slow machine shows slower time, it does not fall behind
      paint();
      requestAnimationFrame(frame);
    }

    function run() {
      buttons.play.textContent = playing ? "Pause" : "Play";
      if (playing && seen && !looping) {
        looping = true;
        before = performance.now();
        requestAnimationFrame(frame);
      }
    }

    buttons.play.addEventListener("click", () => {
      playing = !playing;
      run();
    });
    buttons.step.addEventListener("click", () => {
      playing = false;
      run();
      shown.film.advance();
      paint();
    });
    buttons.restart.addEventListener("click", () => {
      restart(api.state);
      paint();
    });
    // paper is light, whatever the screen is; it is drawn at once, for paper does not wait
    window.matchMedia("print").addEventListener("change", () => {
      dip();
      paint();
    });
    new IntersectionObserver((entries) => {
      seen = entries[entries.length - 1].isIntersecting;
      run();
    }).observe(canvas);

    let surface = null;
    return (state) => {
      dip();
      if (surface !== state.surface) {
        surface = state.surface;
        [view.elevation, view.azimuth] = VIEWS[surface];
      }
      // what this state does not use is asleep
      const drawn = !(state.family in flow.FIXED || state.family === "identity");
      count.disabled = state.family in flow.FIXED;
      spread.disabled = state.family !== "oscillating";
      seed.disabled = !drawn && !["random", "clusters"].includes(state.start);
      if (!shown || shown.key !== keyOf(state)) {
        restart(state);
      }
      paint();
    };
  });
})();
