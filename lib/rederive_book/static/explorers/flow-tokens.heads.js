// How the heads move (`rederive.head_weights`), where the tokens start, and runs of the explorer
// of flows. A head is the six numbers D₁₁ D₁₂ D₁₃ D₂₂ D₂₃ D₃₃.
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});
  const explorers = (book.explorers = book.explorers || {});

  const IDENTITY = [1, 0, 0, 1, 0, 1];
  // Families with matrices of their own: [D₁₁, D₁₂, D₂₂] on the circle.
  const FIXED = {
    rising: [[0.5, 0, -0.5], [-4, 0, -2]],
    cycle: [[5, 3, 3], [-5, -3, -3]],
    clouds: [[4.21, -1.15, -3.12], [-2.89, 0.95, -0.42], [-3.47, 0.04, -0.62]],
  };
  const FAMILIES = [...Object.keys(FIXED), "identity", "gaussian", "relaxing", "noise", "oscillating"];

  /** Standard normal numbers, the same on every machine: mulberry32 and the method of Box and Muller. */
  function normals(seed) {
    let state = seed >>> 0;
    function uniform() {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    }
    return () => {
      const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
      return radius * Math.cos(2 * Math.PI * uniform());
    };
  }

  /** (Z + Zᵀ)/2 of nine standard normal numbers Z, row by row. */
  function symmetricNormal(draw) {
    const z = Array.from({ length: 9 }, draw);
    return [z[0], (z[1] + z[3]) / 2, (z[2] + z[6]) / 2, z[4], (z[5] + z[7]) / 2, z[8]];
  }

  /** Gaussian heads Z + Zᵀ. */
  function gaussianHeads(seed, count) {
    const draw = normals(seed);
    return Array.from({ length: count }, () => symmetricNormal(draw).map((v) => 2 * v));
  }

  /** The matrix F of oscillating heads, from cosines and sines of kτ, k = 0, 1, 2. */
  function series(cos, sin) {
    const mean = 2 * cos[0];
    const last = (1.5 * (cos[1] - sin[1])) / Math.SQRT2;
    return [mean + 1.5 * cos[1], sin[2], sin[1], mean + 1.5 * sin[1], cos[2], mean + last];
  }

  /** The periodic solution of D' = F(τ) − D. */
  function periodic(tau) {
    const [cos, sin] = [[], []];
    for (let k = 0; k < 3; k += 1) {
      const [c, s] = [Math.cos(k * tau), Math.sin(k * tau)];
      cos.push((c + k * s) / (1 + k * k));
      sin.push((s - k * c) / (1 + k * k));
    }
    return series(cos, sin);
  }

  const blend = (near, far, share) => near.map((v, k) => v + share * (far[k] - v));
  const onCircle = (head) => [head[0], head[1], 0, head[3], 0, 0];

  /**
   * A law of the heads: `count`, and either `at(time)`, or for heads with noise `start` and
   * `advance(heads, dt, draw)`, the exact transition of dD = (I − D)dt + σdW, σ² = 2.
   *
   * `spread` stretches the phases 2πh/H: 1 spaces them evenly, 0 makes them equal. `scale`
   * multiplies every matrix.
   */
  function makeLaw({ family, count, seed = 1, spread = 1, scale = 1, circle = false }) {
    const shape = (heads) =>
      heads.map((head) => (circle ? onCircle(head) : head).map((v) => scale * v));
    const still = (heads) => {
      const shown = shape(heads);
      return { count: heads.length, at: () => shown };
    };
    if (FIXED[family]) {
      return still(FIXED[family].map(([a, b, d]) => [a, b, 0, d, 0, 0]));
    }
    if (family === "identity") {
      return still(new Array(count).fill(IDENTITY));
    }
    const start = gaussianHeads(seed, count);
    if (family === "gaussian") {
      return still(start);
    }
    if (family === "relaxing") {
      const at = (time) => shape(start.map((head) => blend(IDENTITY, head, Math.exp(-time))));
      return { count, at };
    }
    if (family === "oscillating") {
      const phases = start.map((_, h) => (spread * 2 * Math.PI * h) / count);
      const gaps = phases.map((phase, h) => periodic(phase).map((v, k) => start[h][k] - v));
      const at = (time) => {
        const share = Math.exp(-time);
        return shape(
          phases.map((phase, h) => periodic(time + phase).map((v, k) => v + share * gaps[h][k])),
        );
      };
      return { count, phases, at };
    }
    function advance(heads, dt, draw) {
      const [kept, size] = [Math.exp(-dt), Math.sqrt(-Math.expm1(-2 * dt))];
      return heads.map((head) => {
        const noise = symmetricNormal(draw);
        return head.map((v, k) => IDENTITY[k] + kept * (v - IDENTITY[k]) + size * noise[k]);
      });
    }
    return { count, start, shape, advance };
  }

  const unit = (x, y, z) => {
    const size = Math.hypot(x, y, z);
    return [x / size, y / size, z / size];
  };
  const atAngle = (angle) => [Math.cos(angle), Math.sin(angle), 0];
  const ends = (circle) => (circle ? 4 : 6);

  // Where the token with number i of n starts.
  const PLACES = {
    even(i, n, circle) {
      if (circle) {
        return atAngle((2 * Math.PI * i) / n);
      }
      const height = 1 - (2 * i + 1) / n;
      const radius = Math.sqrt(1 - height * height);
      const angle = Math.PI * (3 - Math.sqrt(5)) * i;
      return [radius * Math.cos(angle), radius * Math.sin(angle), height];
    },
    random: (i, n, circle, draw) => unit(draw(), draw(), circle ? 0 : draw()),
    clusters(i, n, circle, draw) {
      const vertex = group("clusters", i, n, circle);
      const half = ends(circle) / 2;
      const place = [0, 0, 0];
      place[vertex % half] = vertex < half ? 1 : -1;
      const noise = [draw(), draw(), circle ? 0 : draw()];
      return unit(...place.map((v, k) => v + 0.05 * noise[k]));
    },
    fan: (i, n) => atAngle(1.2 + (n > 1 ? (0.2 * (2 * i - n + 1)) / (n - 1) : 0)),
    pair: (i) => atAngle(i % 2 ? Math.PI / 2 : 0.2),
    clouds(i, n) {
      const each = Math.ceil(n / 2);
      const [middle, k] = i < each ? [5.784, i] : [1.134, i - each];
      return atAngle(middle + (each > 1 ? 0.2 * ((2 * k) / (each - 1) - 1) : 0));
    },
  };
  const STARTS = Object.keys(PLACES);

  /** Colour of a token: clusters and clouds keep theirs. */
  function group(start, i, n, circle) {
    if (start === "clusters") {
      return Math.floor((i * ends(circle)) / n);
    }
    if (start === "clouds") {
      return i < Math.ceil(n / 2) ? 0 : 1;
    }
    return start === "pair" ? i % 2 : 0;
  }

  /** Tokens at the start, 3n numbers. */
  function tokens({ start, n, circle = false, seed = 1 }) {
    const draw = normals(1000 + seed);
    return Float64Array.from(
      Array.from({ length: n }, (_, i) => PLACES[start](i, n, circle, draw)).flat(),
    );
  }

  /** The law of the heads and the tokens at the start, for a state of the explorer. */
  function begin(state) {
    const circle = state.surface === "circle";
    const law = makeLaw({ ...state, circle });
    const x = tokens({ start: state.start, n: state.n, circle, seed: state.seed });
    return { law, x, sign: state.direction === "ascending" ? 1 : -1 };
  }

  /**
   * A run: `advance()` makes one step of length dt. Heads with noise allow order 1 only, for their
   * paths are too rough for more; the others are followed by the classical scheme of order 4.
   */
  function start(state, dt) {
    const { law, x, sign } = begin(state);
    const draw = normals(2000 + state.seed);
    let heads = law.start;
    let steps = 0;
    const at = law.at || (() => law.shape(heads));
    const run = { x, time: 0, law, now: null };
    const look = () => {
      run.now = flow.rates(run.x, at(run.time), state.flow, sign);
    };
    run.advance = () => {
      const order = law.at ? 4 : 1;
      run.x = flow.step(run.x, at, run.time, dt, state.flow, sign, order, run.now);
      if (!law.at) {
        heads = law.advance(heads, dt, draw);
      }
      steps += 1;
      run.time = steps * dt;
      look();
    };
    look();
    return run;
  }

  /** The numbers of the table for a run, `origin` being the energy at its start. */
  function readings(run, origin) {
    const { energy, dissipation, claimed, velocity } = run.now;
    return {
      time: run.time,
      heads: run.law.count,
      energy,
      change: energy - origin,
      dissipation,
      claimed,
      fastest: flow.fastest(velocity),
    };
  }

  function evaluate(state) {
    const run = start(state, 1);
    return readings(run, run.now.energy);
  }

  const flow = Object.assign(explorers["flow-tokens"] || {}, {
    FAMILIES, FIXED, STARTS, begin, evaluate, gaussianHeads, group, law: makeLaw, normals, periodic,
    readings, start, tokens,
  });
  explorers["flow-tokens"] = flow;
})();
