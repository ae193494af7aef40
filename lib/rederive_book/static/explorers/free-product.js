// The free product and its outliers: bulk and outliers above, the overlap against θ below.
"use strict";

(() => {
  const book = window.Rederive;
  const math = book.explorers["free-product"];
  const MOST_THETA = 10;

  function drawBulk(plot, state, values) {
    const curve = math.density(state.delta, state.gamma, 257);
    const marks = [
      ["location_mean", "vocabulary mean", "rx-third", 0.86],
      ["location", "signal", "rx-measured", 0.68],
      ["location_stated", "as stated", "rx-rejected", 0.5],
      ["below", "below the bulk", "rx-second", 0.32],
    ].filter(([key]) => values[key] !== null);
    const far = Math.max(values.upper, ...marks.map(([key]) => values[key]));
    const end = book.plot.roundUp(1.06 * Math.min(far, 4 * values.upper));
    const high = Math.max(...curve.density.filter(Number.isFinite));
    const top = book.plot.roundUp(1.05 * Math.min(high, 4 / (values.upper - values.lower)));
    plot.frame({ x: [0, end], y: [0, top], bottom: 0.6, xLabel: "eigenvalue of S/κ", yLabel: "density" });
    if (values.atom > 0) {
      plot.bar(0, end * 0.012, 0, top * values.atom, "rx-bar rx-theory");
      plot.text(end * 0.012, top * values.atom, `mass ${book.core.numberText(values.atom)} at 0`,
        "rx-small", "start", 4, 10);
    }
    plot.area(curve.x, curve.density, "rx-area rx-theory");
    plot.line(curve.x, curve.density, "rx-line rx-theory");
    for (const [key, words, colour, height] of marks) {
      const x = values[key];
      const y = height * top;
      if (x > end) {
        plot.text(end, y, `${words} at ${book.core.numberText(x)} →`, `rx-word ${colour}`, "end", 0, 4);
        continue;
      }
      plot.line([x, x], [0, y], `${key === "location_stated" ? "rx-dash" : "rx-line"} ${colour}`);
      if (key === "location_stated") {
        plot.dot(x, y, `rx-ring ${colour}`);
      } else if (key === "location_mean") {
        plot.diamond(x, y, `rx-diamond ${colour}`);
      } else {
        plot.dot(x, y, `rx-dot ${colour}`);
      }
      // As stated lies to the left of the signal: so do its words, where there is room.
      const late = key === "location_stated" ? x > 0.3 * end : x > 0.6 * end;
      plot.text(x, y, words, `rx-word ${colour}`, late ? "end" : "start", late ? -9 : 9, 4);
    }
  }

  function drawOverlap(plot, { delta, gamma, q, theta }, values) {
    const thetas = [];
    for (let i = 0; i <= 120; i += 1) {
      thetas.push((MOST_THETA * i) / 120);
    }
    const critical = values.spike;
    const both = thetas.map((t) => math.overlaps(q, t, delta, gamma, critical));
    plot.frame({ x: [0, MOST_THETA], y: [0, 1], top: 0.6, xLabel: "strength of the signal θ",
      yLabel: "squared overlap with μ" });
    plot.line(thetas, both.map((one) => one.stated), "rx-dash rx-rejected");
    plot.line(thetas, both.map((one) => one.derived), "rx-line rx-theory");
    plot.line([theta, theta], [0, 1], "rx-fine rx-ink");
    plot.dot(theta, values.overlap_stated, "rx-ring rx-rejected");
    plot.dot(theta, values.overlap, "rx-dot rx-measured");
  }

  book.core.register("free-product", (api) => {
    const plot = api.plot();
    return (state) => {
      const values = math.evaluate(state);
      plot.begin();
      drawBulk(plot, state, values);
      drawOverlap(plot, state, values);
      plot.end();
      api.numbers(values);
    };
  });
})();
