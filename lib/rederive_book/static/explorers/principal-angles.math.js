// The noise of two tied heads from their principal angles: the numbers of `rederive.diversity` and
// `rederive.covariances`. Pure functions; variances and covariances in units of σ²/n.
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});
  const explorers = (book.explorers = book.explorers || {});

  /** Cosine of an angle in degrees from 0 to 90, exact at both ends and at 60. */
  function cosine(degrees) {
    if (degrees === 90) {
      return 0;
    }
    return degrees === 60 ? 0.5 : Math.cos((degrees * Math.PI) / 180);
  }

  /** Head diversity index: one minus the mean squared cosine. */
  function diversityIndex(cosines) {
    const overlap = cosines.reduce((sum, c) => sum + c * c, 0);
    return Math.min(1, Math.max(0, 1 - overlap / cosines.length));
  }

  /** A double as m·2^e with an integer m. */
  function exactly(value) {
    let exponent = 0;
    let whole = value;
    while (!Number.isInteger(whole)) {
      whole *= 2; // exact: only the exponent changes
      exponent -= 1;
    }
    return [BigInt(whole), exponent];
  }

  /** 1 − β²c(1 + c), near 0 in exact arithmetic and then rounded: its sign decides the domain. */
  function gap(c, beta) {
    const rounded = 1 - beta * c * (beta * (1 + c));
    if (!(Math.abs(rounded) < 1e-4)) {
      return rounded;
    }
    const [b, eb] = exactly(beta);
    const [m, ec] = exactly(c);
    const shift = -(2 * eb + 2 * ec);
    const one = 1n << BigInt(shift);
    const oneInCosines = 1n << BigInt(-ec);
    return Number(one - b * b * m * (oneInCosines + m)) * 2 ** -shift;
  }

  /** Covariance of the noise of two heads, Infinity where the integral over the queries diverges. */
  function headCovariance(cosines, beta) {
    let logs = 0;
    for (const c of cosines) {
      const factor = gap(c, beta);
      if (!(factor > 0)) {
        return Infinity;
      }
      logs += Math.log(factor) + Math.log1p(beta * c * (beta * (1 - c)));
    }
    return Math.exp(-0.5 * logs);
  }

  /** Variance of one head of dimension k. */
  function headVariance(k, beta) {
    return headCovariance(new Array(k).fill(1), beta);
  }

  /** Bounds of the covariance by the index alone: φ(1−HDI)^k and V^(1−HDI), or null if V diverges. */
  function envelope(diversity, k, beta) {
    const variance = headVariance(k, beta);
    if (variance === Infinity) {
      return null;
    }
    const overlap = 1 - diversity;
    const lower = headCovariance(new Array(k).fill(Math.sqrt(overlap)), beta);
    return [lower, variance ** overlap];
  }

  /** 1/√k, rounded as the library rounds it: at k = 2 and κ = 1 the variance must diverge. */
  const inverseRoot = (k) => (k === 2 ? Math.SQRT1_2 : 1 / Math.sqrt(k));

  /** The k angles of a state, in degrees. */
  const angles = (state) => [1, 2, 3, 4].slice(0, state.k).map((j) => state[`theta${j}`]);

  const finite = (value) => (value === Infinity ? "diverges" : value);

  /** The numbers of the table, for k angles theta1 … in degrees and β = κ/√k. */
  function evaluate(state) {
    const beta = state.kappa * inverseRoot(state.k);
    const cosines = angles(state).map(cosine);
    const index = diversityIndex(cosines);
    const covariance = headCovariance(cosines, beta);
    const variance = headVariance(state.k, beta);
    const average = (variance + covariance) / 2;
    const bounds = envelope(index, state.k, beta);
    let sense = "the limit";
    if (covariance === Infinity) {
      sense = "diverges";
    } else if (variance === Infinity) {
      sense = "a lower bound";
    }
    return {
      index,
      covariance: finite(covariance),
      sense,
      variance: finite(variance),
      average: finite(average),
      // what the mean of two heads keeps of the variance of one: ½(1 + C/V)
      kept: variance === Infinity ? null : average / variance,
      lower: bounds && bounds[0],
      upper: bounds && bounds[1],
    };
  }

  explorers["principal-angles"] = Object.freeze({
    angles,
    cosine,
    diversityIndex,
    envelope,
    evaluate,
    headCovariance,
    headVariance,
    inverseRoot,
  });
})();
