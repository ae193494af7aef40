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

  function plot(api) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "rx-live");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", api.stage.dataset.seen);
    // Letters are what takes a browser long: those that stay as they were are left alone.
    const shapes = svg.appendChild(document.createElementNS(SVG, "g"));
    const letters = svg.appendChild(document.createElementNS(SVG, "g"));
    const known = []; // of each text element, how it stands
    api.stage.append(svg);
    let parts = [];
    let words = [];
    let width = 0;
    let height = 0;
    let box = null; // of the present frame: left, right, top, bottom in pixels
    let scale = null; // x0, x1, y0, y1

    const px = (x) => box.left + ((x - scale.x0) / (scale.x1 - scale.x0)) * (box.right - box.left);
    const py = (y) => box.bottom - ((y - scale.y0) / (scale.y1 - scale.y0)) * (box.bottom - box.top);
    const n = (value) => (Math.round(value * 100) / 100).toString();
    const write = (x, y, text, marks, anchor) => words.push([n(x), n(y), String(text), marks, anchor]);
    const clampY = (y) => Math.min(scale.y1, Math.max(scale.y0, y));

    // Neighbours that look alike become one element: few elements are fast.
    let last = "";
    function closed(marks, path) {
      const start = `<path class="${marks}" d="`;
      if (parts.length && last === start) {
        parts[parts.length - 1] = `${parts[parts.length - 1].slice(0, -3)}${path}"/>`;
      } else {
        parts.push(`${start}${path}"/>`);
      }
      last = start;
      return self;
    }

    function open(marks, path) {
      parts.push(`<path class="${marks}" d="${path}"/>`);
      last = "";
      return self;
    }

    const self = {
      ticks,
      roundUp,
      begin() {
        parts = [];
        words = [];
        if (width !== api.size.width || height !== api.size.height) {
          ({ width, height } = api.size);
          svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
        }
        return self;
      },
      end() {
        shapes.innerHTML = parts.join("");
        words.forEach((one, index) => {
          const key = one.join("|");
          if (known[index] === key) {
            return;
          }
          known[index] = key;
          const element = letters.children[index]
            || letters.appendChild(document.createElementNS(SVG, "text"));
          const [x, y, text, marks, anchor] = one;
          const set = { x, y, class: marks, "text-anchor": anchor };
          for (const [name, value] of Object.entries(set)) {
            if (element.getAttribute(name) !== value) {
              element.setAttribute(name, value);
            }
          }
          if (element.textContent !== text) {
            element.textContent = text;
          }
        });
        while (letters.children.length > words.length) {
          letters.lastChild.remove();
          known.pop();
        }
      },
      // Axes in a part of the stage: top and bottom as shares of its height.
      frame({ x, y, top = 0, bottom = 1, left = 44, right = 12, xLabel = "", yLabel = "",
        xTicks = true, yTicks = true }) {
        box = { left, right: width - right, top: top * height + 22,
          bottom: bottom * height - (xTicks ? 36 : 20) };
        scale = { x0: x[0], x1: x[1], y0: y[0], y1: y[1] };
        let axis = `M${n(box.left)} ${n(box.top)}V${n(box.bottom)}H${n(box.right)}`;
        if (xTicks) {
          for (const value of ticks(x[0], x[1], Math.max(4, (box.right - box.left) / 70))) {
            axis += `M${n(px(value))} ${n(box.bottom)}v4`;
            write(px(value), box.bottom + 15, tickText(value), "rx-small", "middle");
          }
        }
        if (yTicks) {
          for (const value of ticks(y[0], y[1], Math.max(2, (box.bottom - box.top) / 45))) {
            axis += `M${n(box.left)} ${n(py(value))}h-4`;
            write(box.left - 7, py(value) + 4, tickText(value), "rx-small", "end");
          }
        }
        open("rx-axis", axis);
        if (xLabel) {
          write(box.right, box.bottom + (xTicks ? 31 : 15), xLabel, "rx-small", "end");
        }
        if (yLabel) {
          write(box.left - 38, box.top - 10, yLabel, "rx-small", "start");
        }
        return self;
      },
      line(xs, ys, marks) {
        let path = "";
        for (let i = 0; i < xs.length; i += 1) {
          path += `${i ? "L" : "M"}${n(px(xs[i]))} ${n(py(clampY(ys[i])))}`;
        }
        return open(marks, path);
      },
      area(xs, ys, marks) {
        let path = `M${n(px(xs[0]))} ${n(py(Math.max(0, scale.y0)))}`;
        for (let i = 0; i < xs.length; i += 1) {
          path += `L${n(px(xs[i]))} ${n(py(clampY(ys[i])))}`;
        }
        return open(marks, `${path}L${n(px(xs[xs.length - 1]))} ${n(py(Math.max(0, scale.y0)))}Z`);
      },
      // A rectangle between two corners.
      bar(x0, x1, y0, y1, marks) {
        const [a, b] = [px(x0), px(x1)].sort((s, t) => s - t);
        const [c, d] = [py(y0), py(y1)].sort((s, t) => s - t);
        if (n(c) === n(d)) {
          return self; // no line where there is nothing
        }
        return closed(marks, `M${n(a)} ${n(c)}H${n(b)}V${n(d)}H${n(a)}Z`);
      },
      dot(x, y, marks, radius = 5) {
        const r = radius;
        return closed(marks, `M${n(px(x) - r)} ${n(py(clampY(y)))}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`);
      },
      diamond(x, y, marks, radius = 6.5) {
        const [a, b] = [px(x), py(clampY(y))];
        return closed(marks, `M${n(a)} ${n(b - radius)}l${radius} ${radius}l-${radius} ${radius}l-${radius} -${radius}Z`);
      },
      text(x, y, text, marks = "", anchor = "start", dx = 0, dy = 0) {
        write(px(x) + dx, py(y) + dy, text, marks, anchor);
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
