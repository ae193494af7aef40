// A small plot in the stage of an explorer: axes, curves, bars and marks, drawn anew at every move.
// rederive_book/explorer_picture.py draws the stills in the same way.
"use strict";

(() => {
  const book = (window.Rederive = window.Rederive || {});
  const SVG = "http://www.w3.org/2000/svg";

  // Round steps, about `count` of them between two numbers.
  function ticks(low, high, count) {
    const rough = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) * power;
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push(k * step);
    }
    return found;
  }

  // The least round number that is not below.
  function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    const factors = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];
    return factors.find((factor) => factor * power >= value * (1 - 1e-9)) * power;
  }

  function tickText(value) {
    return String(Number(value.toPrecision(6))).replace("-", "−");
  }

  function escapeText(text) {
    return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  }

  function plot(api) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "rx-live");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", api.stage.dataset.seen);
    api.stage.append(svg);
    let parts = [];
    let width = 0;
    let height = 0;
    let box = null; // of the present frame: left, right, top, bottom in pixels
    let scale = null; // x0, x1, y0, y1

    const px = (x) => box.left + ((x - scale.x0) / (scale.x1 - scale.x0)) * (box.right - box.left);
    const py = (y) => box.bottom - ((y - scale.y0) / (scale.y1 - scale.y0)) * (box.bottom - box.top);
    const n = (value) => (Math.round(value * 100) / 100).toString();
    const clampY = (y) => Math.min(scale.y1, Math.max(scale.y0, y));

    const self = {
      ticks,
      roundUp,
      begin() {
        parts = [];
        width = api.stage.clientWidth;
        height = api.stage.clientHeight;
        svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
        return self;
      },
      end() {
        svg.innerHTML = parts.join("");
      },
      // Axes in a part of the stage: top and bottom as shares of its height.
      frame({ x, y, top = 0, bottom = 1, left = 44, right = 12, xLabel = "", yLabel = "",
        xTicks = true, yTicks = true }) {
        box = { left, right: width - right, top: top * height + 16,
          bottom: bottom * height - (xTicks ? 36 : 20) };
        scale = { x0: x[0], x1: x[1], y0: y[0], y1: y[1] };
        parts.push(`<path class="rx-axis" d="M${n(box.left)} ${n(box.top)}V${n(box.bottom)}H${n(box.right)}"/>`);
        if (xTicks) {
          for (const value of ticks(x[0], x[1], Math.max(3, (box.right - box.left) / 80))) {
            parts.push(`<path class="rx-axis" d="M${n(px(value))} ${n(box.bottom)}v4"/>`
              + `<text class="rx-small" x="${n(px(value))}" y="${n(box.bottom + 15)}" text-anchor="middle">${tickText(value)}</text>`);
          }
        }
        if (yTicks) {
          for (const value of ticks(y[0], y[1], Math.max(2, (box.bottom - box.top) / 45))) {
            parts.push(`<path class="rx-axis" d="M${n(box.left)} ${n(py(value))}h-4"/>`
              + `<text class="rx-small" x="${n(box.left - 7)}" y="${n(py(value) + 4)}" text-anchor="end">${tickText(value)}</text>`);
          }
        }
        if (xLabel) {
          parts.push(`<text class="rx-small" x="${n(box.right)}" y="${n(box.bottom + (xTicks ? 31 : 15))}" text-anchor="end">${escapeText(xLabel)}</text>`);
        }
        if (yLabel) {
          parts.push(`<text class="rx-small" x="${n(box.left - 38)}" y="${n(box.top - 5)}">${escapeText(yLabel)}</text>`);
        }
        return self;
      },
      line(xs, ys, marks) {
        let path = "";
        for (let i = 0; i < xs.length; i += 1) {
          path += `${i ? "L" : "M"}${n(px(xs[i]))} ${n(py(clampY(ys[i])))}`;
        }
        parts.push(`<path class="${marks}" d="${path}"/>`);
        return self;
      },
      area(xs, ys, marks) {
        let path = `M${n(px(xs[0]))} ${n(py(Math.max(0, scale.y0)))}`;
        for (let i = 0; i < xs.length; i += 1) {
          path += `L${n(px(xs[i]))} ${n(py(clampY(ys[i])))}`;
        }
        parts.push(`<path class="${marks}" d="${path}L${n(px(xs[xs.length - 1]))} ${n(py(Math.max(0, scale.y0)))}Z"/>`);
        return self;
      },
      // A rectangle between two corners.
      bar(x0, x1, y0, y1, marks) {
        const [a, b] = [px(x0), px(x1)].sort((s, t) => s - t);
        const [c, d] = [py(y0), py(y1)].sort((s, t) => s - t);
        parts.push(`<rect class="${marks}" x="${n(a)}" y="${n(c)}" width="${n(b - a)}" height="${n(d - c)}"/>`);
        return self;
      },
      dot(x, y, marks, radius = 5) {
        parts.push(`<circle class="${marks}" cx="${n(px(x))}" cy="${n(py(clampY(y)))}" r="${radius}"/>`);
        return self;
      },
      diamond(x, y, marks, radius = 6.5) {
        const [a, b] = [px(x), py(clampY(y))];
        parts.push(`<path class="${marks}" d="M${n(a)} ${n(b - radius)}l${radius} ${radius}l-${radius} ${radius}l-${radius} -${radius}Z"/>`);
        return self;
      },
      text(x, y, words, marks = "", anchor = "start", dx = 0, dy = 0) {
        parts.push(`<text class="${marks}" x="${n(px(x) + dx)}" y="${n(py(y) + dy)}" text-anchor="${anchor}">${escapeText(words)}</text>`);
        return self;
      },
      get width() {
        return width;
      },
    };
    return self;
  }

  plot.ticks = ticks;
  plot.roundUp = roundUp;
  book.plot = plot;
})();
