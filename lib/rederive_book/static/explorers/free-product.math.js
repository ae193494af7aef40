// MP_δ ⊠ MP_γ and its outliers, as rederive.product_curve and rederive.spikes have them: along the
// bulk everything is explicit in p = Re m, so no equation is solved; see the chapter on pooling.
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});

  // The law in its normal form: (1, δ, γ) divided by the largest are 1 ≥ b ≥ c.
  function productCurve(delta, gamma) {
    const [least, middle, most] = [1, delta, gamma].sort((s, t) => s - t);
    const [b, c] = [middle / most, least / most];
    const [beta, chi] = [(most - middle) / most, (most - least) / most];
    const [a2, a1] = [b * c, b + c + b * c];
    const [cubic, linear] = [2 * a2, a1];
    const cosine = Math.min(1, ((1.5 * cubic) / linear) * Math.sqrt(3 / linear));
    let top = 2 * Math.sqrt(linear / 3) * Math.cos(Math.acos(cosine) / 3);
    for (let round = 0; round < 3; round += 1) {
      top = (2 * top ** 3 + cubic) / (3 * top * top - linear);
    }
    let gaps;
    let yLower;
    let spread;
    if (top > 0.5) { // the two other roots as −1 + s, so that small s keep their digits
      const third = 1 + top;
      const product = (beta * chi) / third;
      const total = (2 * (beta + chi) - beta * chi - product) / third;
      const larger = (total + Math.sqrt(Math.max(0, total * total - 4 * product))) / 2;
      const low = larger ? product / larger : 0;
      gaps = [low, low - beta, low - chi];
      yLower = low - 1;
      spread = larger - low;
    } else {
      yLower = -(top + Math.sqrt(top * top - (4 * cubic) / top)) / 2;
      spread = cubic / (yLower * top) - yLower;
      gaps = [1 + yLower, yLower + b, yLower + c];
    }
    gaps = gaps.map((gap) => gap / yLower); // 1 + p, 1 + bp, 1 + cp at the edge
    return {
      b, c, a1, a2, gaps, yLower, spread,
      yUpper: top,
      yMiddle: cubic / (yLower * top),
      stretch: most,
      lower: Math.abs(gaps[0] * gaps[1] * gaps[2] * yLower),
      upper: (1 + top) * (1 + b / top) * (1 + c / top),
    };
  }

  function support(delta, gamma) {
    const curve = productCurve(delta, gamma);
    return [curve.stretch * curve.lower, curve.stretch * curve.upper];
  }

  function atom(delta, gamma) {
    return 1 - 1 / Math.max(1, delta, gamma);
  }

  // Points x and density, from edge to edge, denser towards the edges.
  function density(delta, gamma, count) {
    const curve = productCurve(delta, gamma);
    const { b, c, a2, gaps, yLower, yUpper, yMiddle, stretch } = curve;
    const length = 1 / yUpper - 1 / yLower;
    const xs = new Array(count);
    const ys = new Array(count);
    for (let i = 0; i < count; i += 1) {
      const angle = (Math.PI * i) / (count - 1);
      const left = i === count - 1 ? 1 : Math.sin(angle / 2) ** 2;
      const right = i === count - 1 ? 0 : Math.cos(angle / 2) ** 2;
      const fromLower = length * left;
      const fromMiddle = fromLower + curve.spread / (yLower * yMiddle);
      const q = yLower ** 2 + 2 * a2 * fromLower;
      const h2 = (2 * a2 * fromLower * length * right * fromMiddle) / q;
      let x = Math.sqrt(q);
      x *= Math.sqrt((gaps[0] + fromLower) ** 2 + h2);
      x *= Math.sqrt((gaps[1] + b * fromLower) ** 2 + b * b * h2);
      x *= Math.sqrt((gaps[2] + c * fromLower) ** 2 + c * c * h2);
      xs[i] = stretch * x;
      ys[i] = Math.sqrt(h2) / (Math.PI * x) / stretch ** 2;
    }
    if (curve.lower === 0) {
      ys[0] = Infinity; // a hard edge
    }
    xs[0] = stretch * curve.lower;
    xs[count - 1] = stretch * curve.upper;
    return { x: xs, density: ys };
  }

  function level(y, delta, gamma) {
    return (1 + y) * (1 + delta / y) * (1 + gamma / y);
  }

  // Strength y* from which an outlier is seen, and the smallest critical point of λ.
  function criticalPoints(delta, gamma) {
    const curve = productCurve(delta, gamma);
    return { least: curve.stretch * curve.yLower, spike: curve.stretch * curve.yUpper };
  }

  // Location, or null where there is none, and squared overlap with the spike's direction.
  function outlier(y, delta, gamma, critical) {
    const seen = Math.max(y, critical);
    const quotient = 1 + critical / seen + ((2 * delta * gamma) / critical) / seen ** 2;
    const overlap = ((1 - critical / seen) * quotient) / (1 + gamma / seen);
    return { location: y > critical ? level(y, delta, gamma) : null, overlap };
  }

  // Overlaps with μ at one θ: as derived, and by the formula of the source.
  function overlaps(q, theta, delta, gamma, critical) {
    return {
      derived: (theta / (theta + delta))
        * outlier(q * theta + (q - 1) * delta, delta, gamma, critical).overlap,
      stated: outlier(q * theta - delta, delta, gamma, critical).overlap,
    };
  }

  // All numbers of the table; the mean of T tokens has (Σw)²/‖w‖² = T.
  function evaluate({ delta, gamma, q, theta, T }) {
    const [lower, upper] = support(delta, gamma);
    const { least, spike } = criticalPoints(delta, gamma);
    const strength = q * theta + (q - 1) * delta;
    const strengthStated = q * theta - delta;
    const strengthMean = (T - 1) * delta;
    const both = overlaps(q, theta, delta, gamma, spike);
    const location = outlier(strength, delta, gamma, spike).location;
    const locationMean = outlier(strengthMean, delta, gamma, spike).location;
    const below = delta > Math.max(1, gamma) && strength > -delta && strength < least;
    let top = "no outlier";
    if (location !== null || locationMean !== null) {
      top = strengthMean > strength ? "vocabulary mean" : "signal";
    }
    return {
      lower,
      upper,
      atom: atom(delta, gamma),
      spike,
      strength,
      strength_stated: strengthStated,
      strength_mean: strengthMean,
      threshold: Math.max(0, (delta + spike) / q - delta),
      threshold_stated: (delta + spike) / q,
      location,
      location_stated: outlier(strengthStated, delta, gamma, spike).location,
      location_mean: locationMean,
      overlap: both.derived,
      overlap_stated: both.stated,
      below: below ? level(strength, delta, gamma) : null,
      top,
    };
  }

  book.explorers = book.explorers || {};
  book.explorers["free-product"] = {
    productCurve, support, atom, density, level, criticalPoints, outlier, overlaps, evaluate,
  };
})();
