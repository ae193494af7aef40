// Tokens on the sphere under attention and its gradient flows: the numbers of `rederive.flows` and
// `rederive.integrators`. Tokens are 3n numbers; a head is symmetric and stored as the six numbers
// D₁₁ D₁₂ D₁₃ D₂₂ D₂₃ D₃₃. The circle is the equator: heads there vanish off the first 2×2 block.
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});
  const explorers = (book.explorers = book.explorers || {});
  const FLOWS = Object.freeze(["attention", "gradient", "plain", "joint"]);

  // Stages as (time, coefficient of the stage before), and the weights of the stages.
  const TABLEAUX = {
    1: { stages: [[0, 0]], shares: [1] },
    2: { stages: [[0, 0], [1, 1]], shares: [1 / 2, 1 / 2] },
    4: {
      stages: [[0, 0], [1 / 2, 1 / 2], [1 / 2, 1 / 2], [1, 1]],
      shares: [1 / 6, 1 / 3, 1 / 3, 1 / 6],
    },
  };

  /** Divide every token by its norm, in place. */
  function retract(x) {
    for (let i = 0; i < x.length; i += 3) {
      const size = Math.sqrt(x[i] * x[i] + x[i + 1] * x[i + 1] + x[i + 2] * x[i + 2]);
      x[i] /= size;
      x[i + 1] /= size;
      x[i + 2] /= size;
    }
    return x;
  }

  /** Σ_j U_ij and Σ_j U_ij x_j with U_ij = exp⟨x_i, D x_j⟩, which is symmetric like D. */
  function pairSums(x, head, mass, first) {
    const n = x.length / 3;
    const [a, b, c, d, e, f] = head;
    mass.fill(0);
    first.fill(0);
    for (let i = 0; i < n; i += 1) {
      const p = 3 * i;
      const x0 = x[p];
      const x1 = x[p + 1];
      const x2 = x[p + 2];
      const y0 = a * x0 + b * x1 + c * x2;
      const y1 = b * x0 + d * x1 + e * x2;
      const y2 = c * x0 + e * x1 + f * x2;
      let u = Math.exp(y0 * x0 + y1 * x1 + y2 * x2);
      let m = u;
      let s0 = u * x0;
      let s1 = u * x1;
      let s2 = u * x2;
      for (let j = i + 1; j < n; j += 1) {
        const q = 3 * j;
        const z0 = x[q];
        const z1 = x[q + 1];
        const z2 = x[q + 2];
        u = Math.exp(y0 * z0 + y1 * z1 + y2 * z2);
        m += u;
        s0 += u * z0;
        s1 += u * z1;
        s2 += u * z2;
        mass[j] += u;
        first[q] += u * x0;
        first[q + 1] += u * x1;
        first[q + 2] += u * x2;
      }
      mass[i] += m;
      first[p] += s0;
      first[p + 1] += s1;
      first[p + 2] += s2;
    }
  }

  /** Add Σ_j U_ij D x_j, divided as `gradient` and `pull` need it, and return Σ_i φ(x_i). */
  function addHead(head, mass, first, sums) {
    const [a, b, c, d, e, f] = head;
    const n = mass.length;
    let total = 0;
    for (let i = 0; i < n; i += 1) {
      const p = 3 * i;
      const [s0, s1, s2] = [first[p], first[p + 1], first[p + 2]];
      const along = [a * s0 + b * s1 + c * s2, b * s0 + d * s1 + e * s2, c * s0 + e * s1 + f * s2];
      for (let k = 0; k < 3; k += 1) {
        sums.gradient[p + k] += along[k] / n;
        sums.pull[p + k] += along[k] / mass[i];
      }
      sums.inverse[i] += n / mass[i];
      sums.potential[i] += mass[i] / n;
      total += mass[i] / n;
    }
    return total;
  }

  /** Take the part along the tokens away, and divide by `count`, in place. */
  function toTangent(x, vectors, count) {
    for (let p = 0; p < x.length; p += 3) {
      const along = x[p] * vectors[p] + x[p + 1] * vectors[p + 1] + x[p + 2] * vectors[p + 2];
      for (let k = p; k < p + 3; k += 1) {
        vectors[k] = (vectors[k] - along * x[k]) / count;
      }
    }
  }

  /**
   * Velocity of the tokens, energy, and the rates of its balance.
   *
   * `sign` is −1 for descending tokens, as in the book, and +1 for ascending ones. Dissipation is
   * the rate −⟨g, v⟩ at which moving tokens lower the energy; claimed is weight·|v|², which for
   * attention is 𝒢².
   */
  function rates(x, heads, flow, sign = -1) {
    const n = x.length / 3;
    const count = heads.length;
    const sums = {
      gradient: new Float64Array(3 * n),
      pull: new Float64Array(3 * n),
      inverse: new Float64Array(n),
      potential: new Float64Array(n),
    };
    const mass = new Float64Array(n);
    const first = new Float64Array(3 * n);
    let total = 0;
    for (const head of heads) {
      pairSums(x, head, mass, first);
      total += addHead(head, mass, first, sums);
    }
    toTangent(x, sums.gradient, count);
    toTangent(x, sums.pull, count);
    const velocity = new Float64Array(3 * n);
    let [dissipation, claimed] = [0, 0];
    for (let i = 0; i < n; i += 1) {
      const harmonic = count / sums.inverse[i];
      let weight = harmonic;
      if (flow === "plain") {
        weight = 1;
      } else if (flow === "joint") {
        weight = sums.potential[i] / count;
      }
      let [descent, square] = [0, 0];
      for (let p = 3 * i; p < 3 * i + 3; p += 1) {
        velocity[p] = sign * (flow === "attention" ? sums.pull[p] : sums.gradient[p] / weight);
        descent -= sums.gradient[p] * velocity[p];
        square += velocity[p] * velocity[p];
      }
      dissipation += descent / n;
      claimed += (weight * square) / n;
    }
    return { velocity, energy: total / (2 * count * n), dissipation, claimed };
  }

  /**
   * Tokens after one step of order 1, 2 or 4. `headsAt(time)` gives the heads; stages are put back
   * on the sphere, and so is the end. `now` are the rates at the start, if they are known.
   */
  function step(x, headsAt, time, dt, flow, sign = -1, order = 4, now = null) {
    const { stages, shares } = TABLEAUX[order];
    let velocity = (now || rates(x, headsAt(time), flow, sign)).velocity;
    const moved = Float64Array.from(x, (value, k) => value + dt * shares[0] * velocity[k]);
    for (let s = 1; s < stages.length; s += 1) {
      const [share, factor] = stages[s];
      const stage = Float64Array.from(x, (value, k) => value + factor * dt * velocity[k]);
      velocity = rates(retract(stage), headsAt(time + share * dt), flow, sign).velocity;
      for (let k = 0; k < moved.length; k += 1) {
        moved[k] += dt * shares[s] * velocity[k];
      }
    }
    return retract(moved);
  }

  /** Length of the longest of 3n numbers taken by threes. */
  function fastest(velocity) {
    let most = 0;
    for (let p = 0; p < velocity.length; p += 3) {
      most = Math.max(most, Math.hypot(velocity[p], velocity[p + 1], velocity[p + 2]));
    }
    return most;
  }

  explorers["flow-tokens"] = Object.assign(explorers["flow-tokens"] || {}, {
    FLOWS, fastest, rates, retract, step,
  });
})();
