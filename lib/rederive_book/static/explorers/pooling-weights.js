// Pooling weights: the weights themselves above, what they keep of the signal below.
"use strict";

(() => {
  const book = window.Rederive;
  const math = book.explorers["pooling-weights"];
  const ROWS = [
    ["mean", "mean", "rx-ink"],
    ["causal", "causal", "rx-measured"],
    ["exponential", "exponential", "rx-second"],
    ["best", "best", "rx-theory"],
  ];

  function drawWeights(plot, { T }, weights) {
    const all = Object.values(weights).flat();
    const top = book.plot.roundUp(1.05 * Math.max(...all));
    const low = Math.min(...all) < -1e-9 ? -top : 0;
    const positions = Array.from({ length: T }, (_, t) => t + 1);
    plot.frame({ x: [0.5, T + 0.5], y: [low, top], bottom: 0.6, xLabel: "position t",
      yLabel: "weight, scaled to ‖w‖ = 1" });
    for (const t of positions) {
      plot.bar(t - 0.38, t + 0.38, 0, weights.best[t - 1], "rx-bar rx-theory");
    }
    plot.line([0.5, T + 0.5], [weights.mean[0], weights.mean[0]], "rx-dash rx-ink");
    plot.line(positions, weights.exponential, "rx-fine rx-second");
    plot.line(positions, weights.causal, "rx-line rx-measured");
    for (const t of positions) {
      plot.dot(t, weights.causal[t - 1], "rx-dot rx-measured", T > 32 ? 2.5 : 4);
    }
  }

  function drawGains(plot, values) {
    const end = book.plot.roundUp(1.02 * Math.max(...ROWS.map(([name]) => values[`q_${name}`])));
    plot.frame({ x: [0, end], y: [0, 4], top: 0.6, left: 88, right: 52, yTicks: false,
      xLabel: "gain q = wᵀRw/‖w‖²" });
    ROWS.forEach(([name, words, colour], index) => {
      const q = values[`q_${name}`];
      plot.bar(0, q, 3.2 - index, 3.8 - index, `rx-bar ${colour}`);
      plot.text(0, 3.5 - index, words, `rx-word ${colour}`, "end", -6, 4);
      plot.text(q, 3.5 - index, book.core.numberText(q), "", "start", 6, 4);
    });
  }

  book.core.register("pooling-weights", (api) => {
    const plot = api.plot();
    return (state) => {
      const values = math.evaluate(state);
      plot.begin();
      drawWeights(plot, state, math.weights(state));
      drawGains(plot, values);
      plot.end();
      api.numbers(values);
    };
  });
})();
