// Pooling weights and their gain q = wᵀRw/‖w‖², as rederive.sequences has them. The best weights are
// top eigenvectors of R in closed form, up to one root that Newton's method finds to the last digit.
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});

  function unit(weights) {
    const largest = Math.max(...weights.map(Math.abs));
    const scaled = weights.map((w) => w / largest);
    const norm = Math.sqrt(scaled.reduce((sum, w) => sum + w * w, 0));
    return scaled.map((w) => w / norm);
  }

  // Causal attention without the diagonal, averaged over rows: w_s ∝ H_{T−1} − H_{s−1}.
  function harmonic(T) {
    const weights = new Array(T).fill(0);
    let tail = 0;
    for (let s = T - 1; s >= 1; s -= 1) {
      tail += 1 / s;
      weights[s - 1] = tail / (T - 1);
    }
    return weights;
  }

  // With the diagonal, whose score is tau.
  function inclusive(T, tau) {
    const weights = new Array(T).fill(0);
    let later = 0;
    for (let s = T; s >= 1; s -= 1) {
      const others = s - 1; // in row s
      const own = others ? 1 / (1 + others * Math.exp(-tau)) : 1;
      weights[s - 1] = (own + later) / T;
      later += others ? (1 - own) / others : 0;
    }
    return weights;
  }

  function exponential(T, rate) {
    return Array.from({ length: T }, (_, s) => Math.exp((-rate * s) / T));
  }

  // Loadings b_t with R_st = b_s b_t off the diagonal.
  function loadings({ model, T, L, rate }) {
    return Array.from({ length: T }, (_, t) => (model === "prefix"
      ? Number(t < L) : Math.exp((-rate * (t + 1)) / T)));
  }

  function correlation(state) {
    const { model, T, phi } = state;
    if (model === "chain") {
      const powers = Array.from({ length: T }, (_, k) => phi ** k);
      return (s, t) => powers[Math.abs(s - t)];
    }
    const b = loadings(state);
    return (s, t) => (s === t ? 1 : b[s] * b[t]);
  }

  function gain(weights, R) {
    const w = unit(weights);
    let total = 0;
    for (let s = 0; s < w.length; s += 1) {
      total += w[s] * w[s];
      for (let t = 0; t < s; t += 1) {
        total += 2 * w[s] * w[t] * R(s, t);
      }
    }
    return total < 1e-12 ? 0 : total; // what rounding leaves of a zero
  }

  // A chain: v_s = cos ω(s − m), m = (T+1)/2, with (1−φ) cos ω(m−1) = 2 sin ω(m−½) sin(ω/2).
  function bestOfChain(T, phi) {
    const size = Math.abs(phi);
    if (size === 0 || T === 1) {
      return new Array(T).fill(1); // all weights are equally good; the mean stands for them
    }
    const m = (T + 1) / 2;
    const f = (w) => (1 - size) * Math.cos(w * (m - 1)) - 2 * Math.sin(w * (m - 0.5)) * Math.sin(w / 2);
    let [low, high] = [0, Math.PI / (T + 1)];
    let omega = size === 1 ? 0 : (low + high) / 2;
    for (let round = 0; round < 60 && size < 1; round += 1) {
      const value = f(omega);
      if (value > 0) {
        low = omega;
      } else {
        high = omega;
      }
      const slope = -(1 - size) * (m - 1) * Math.sin(omega * (m - 1))
        - 2 * (m - 0.5) * Math.cos(omega * (m - 0.5)) * Math.sin(omega / 2)
        - Math.sin(omega * (m - 0.5)) * Math.cos(omega / 2);
      let next = omega - value / slope;
      if (!(next > low && next < high)) {
        next = (low + high) / 2;
      }
      if (Math.abs(next - omega) <= 1e-16 * omega) {
        break;
      }
      omega = next;
    }
    const flip = phi < 0 ? -1 : 1;
    return Array.from({ length: T }, (_, s) => flip ** s * Math.cos(omega * (s + 1 - m)));
  }

  // Rank one beside a diagonal: v_t = b_t/(λ − d_t), d_t = 1 − b_t², Σ b_t²/(λ − d_t) = 1. The sum is
  // convex, and Rayleigh's quotient of b lies below the root: Newton's method climbs to it.
  function bestOfLoadings(b) {
    const squares = b.map((x) => x * x);
    const total = squares.reduce((sum, x) => sum + x, 0);
    const fourth = squares.reduce((sum, x) => sum + x * x, 0);
    let root = (total * total - fourth + total) / total;
    for (let round = 0; round < 60; round += 1) {
      let value = -1;
      let slope = 0;
      for (const x of squares) {
        const share = x / (root - 1 + x);
        value += share;
        slope -= (share * share) / x;
      }
      const next = root - value / slope;
      if (!(next > root)) {
        break;
      }
      root = next;
    }
    return b.map((x) => x / (root - 1 + x * x));
  }

  // Top eigenvector of R: of sum ≥ 0, and if the sum vanishes with a positive first entry.
  function best(state) {
    const { model, T, L, phi } = state;
    if (model === "prefix") {
      return unit(Array.from({ length: T }, (_, t) => Number(t < L || L === 1)));
    }
    const found = unit(model === "chain" ? bestOfChain(T, phi) : bestOfLoadings(loadings(state)));
    const sum = found.reduce((total, w) => total + w, 0);
    const sign = Math.abs(sum) > 1e-9 ? Math.sign(sum) : Math.sign(found[0]);
    return found.map((w) => sign * w);
  }

  // All four, each of norm one, so that they can be compared.
  function weights(state) {
    const { T, mask, tau, rate } = state;
    return {
      mean: unit(new Array(T).fill(1)),
      causal: unit(mask === "strict" ? harmonic(T) : inclusive(T, tau)),
      exponential: unit(exponential(T, rate)),
      best: best(state),
    };
  }

  function effectiveLength(w) {
    return 1 / unit(w).reduce((sum, x) => sum + x ** 4, 0);
  }

  function evaluate(state) {
    const found = weights(state);
    const R = correlation(state);
    const q = {};
    for (const [name, w] of Object.entries(found)) {
      q[name] = gain(w, R);
    }
    return {
      q_mean: q.mean,
      q_causal: q.causal,
      q_exponential: q.exponential,
      q_best: q.best,
      share_mean: q.mean / q.best,
      share_causal: q.causal / q.best,
      length_causal: effectiveLength(found.causal),
      length_exponential: effectiveLength(found.exponential),
      length_best: effectiveLength(found.best),
      winner: Math.abs(q.causal - q.mean) < 1e-9 ? "neither" : q.causal > q.mean ? "causal" : "mean",
    };
  }

  book.explorers = book.explorers || {};
  book.explorers["pooling-weights"] = {
    harmonic, inclusive, exponential, correlation, gain, best, weights, effectiveLength, evaluate,
  };
})();
