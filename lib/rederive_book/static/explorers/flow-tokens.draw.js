// What the explorer of flows draws on its canvas: the sphere with tokens and their ways, and the
// energy below. The view is an elevation and an azimuth in degrees, as in `rederive_book.animations`.
"use strict";

(() => {
  const { explorers } = window.Rederive;
  const SPHERE = 0.68; // share of the height that the sphere takes
  const COLOURS = ["theory", "measured", "second", "third", "fourth", "fifth"];
  const FULL = 2 * Math.PI;

  /** A closed line of 73 points on the sphere: a parallel at a height, or a meridian at an angle. */
  function loop(place) {
    return Float64Array.from(Array.from({ length: 73 }, (_, i) => place((FULL * i) / 72)).flat());
  }
  const parallel = (z) => {
    const r = Math.sqrt(1 - z * z);
    return loop((a) => [r * Math.cos(a), r * Math.sin(a), z]);
  };
  const meridian = (angle) =>
    loop((a) => [Math.cos(a) * Math.cos(angle), Math.cos(a) * Math.sin(angle), Math.sin(a)]);
  const EQUATOR = parallel(0);
  const GRID = [
    ...[-0.5, 0.5].map((share) => parallel(Math.sin((share * Math.PI) / 3))),
    ...[-1, 1].map((share) => parallel(Math.sin((share * Math.PI) / 3))),
    ...[0, 1, 2, 3, 4, 5].map((k) => meridian((k * Math.PI) / 6)),
  ];
  const AXES = [1, 0, 0, 0, 1, 0, 0, 0, 1];

  /** Rows right, up and towards the reader of the change of coordinates. */
  function turned({ elevation, azimuth }) {
    const [e, a] = [(elevation * Math.PI) / 180, (azimuth * Math.PI) / 180];
    const [ce, se, ca, sa] = [Math.cos(e), Math.sin(e), Math.cos(a), Math.sin(a)];
    return [-sa, ca, 0, -se * ca, -se * sa, ce, ce * ca, ce * sa, se];
  }

  function painter(context, box, view, colours) {
    const m = turned(view);
    const right = (x, p) => m[0] * x[p] + m[1] * x[p + 1] + m[2] * x[p + 2];
    const up = (x, p) => m[3] * x[p] + m[4] * x[p + 1] + m[5] * x[p + 2];
    const depth = (x, p) => m[6] * x[p] + m[7] * x[p + 1] + m[8] * x[p + 2];
    const px = (x, p) => box.x + box.r * right(x, p);
    const py = (x, p) => box.y - box.r * up(x, p);

    /** A line through points, its part on the far side paler. */
    function line(points, colour, near, far) {
      context.strokeStyle = colour;
      for (const [front, strength] of [[false, far], [true, near]]) {
        context.globalAlpha = strength;
        context.beginPath();
        for (let p = 3; p < points.length; p += 3) {
          if (depth(points, p) + depth(points, p - 3) >= 0 === front) {
            context.moveTo(px(points, p - 3), py(points, p - 3));
            context.lineTo(px(points, p), py(points, p));
          }
        }
        context.stroke();
      }
      context.globalAlpha = 1;
    }

    /** The mark of a token; every group has a shape of its own. */
    function mark(x, y, size, shape) {
      context.beginPath();
      if (shape % 3 === 0) {
        context.arc(x, y, size, 0, FULL);
      } else {
        const corners = shape % 3 === 1 ? 4 : 3;
        const start = shape < 3 ? -Math.PI / 2 : Math.PI / 2 + Math.PI / corners;
        for (let k = 0; k < corners; k += 1) {
          const angle = start + (FULL * k) / corners;
          context.lineTo(x + 1.3 * size * Math.cos(angle), y + 1.3 * size * Math.sin(angle));
        }
        context.closePath();
      }
      if (shape === 3) {
        context.fillStyle = colours.face;
        context.lineWidth = 2;
        context.fill();
        context.stroke();
      } else {
        context.fill();
      }
    }

    function tokens(x, groups) {
      const order = Array.from(groups, (_, i) => i).sort(
        (i, j) => depth(x, 3 * i) - depth(x, 3 * j),
      );
      for (const i of order) {
        const near = depth(x, 3 * i);
        const colour = colours[COLOURS[groups[i]]];
        context.globalAlpha = near >= 0 ? 1 : 0.35;
        context.fillStyle = colour;
        context.strokeStyle = colour;
        mark(px(x, 3 * i), py(x, 3 * i), 4.2 + 1.3 * near, groups[i]);
      }
      context.globalAlpha = 1;
      context.lineWidth = 1;
    }

    function axes(count) {
      context.font = "12px sans-serif";
      context.textAlign = "center";
      context.fillStyle = colours.muted;
      for (let k = 0; k < count; k += 1) {
        context.globalAlpha = depth(AXES, 3 * k) >= 0 ? 1 : 0.5;
        const [x, y] = [right(AXES, 3 * k), up(AXES, 3 * k)];
        const off = box.r + 12 / Math.max(0.3, Math.hypot(x, y));
        context.fillText(`e${"₁₂₃"[k]}`, box.x + off * x, box.y - off * y + 4);
      }
      context.globalAlpha = 1;
    }
    return { line, tokens, axes };
  }

  /** The sphere: its outline, parallels and meridians, the ways of the tokens, the tokens. */
  function sphere(context, box, view, colours, { x, groups, ways, circle }) {
    const paint = painter(context, box, view, colours);
    context.lineWidth = 1;
    context.strokeStyle = colours.faint;
    context.beginPath();
    context.arc(box.x, box.y, box.r, 0, FULL);
    context.stroke();
    if (!circle) {
      for (const points of GRID) {
        paint.line(points, colours.faint, 0.8, 0.25);
      }
    }
    paint.line(EQUATOR, circle ? colours.muted : colours.faint, 1, 0.5);
    paint.axes(circle ? 2 : 3);
    context.lineWidth = 1.2;
    ways.forEach((way, i) => paint.line(way, colours[COLOURS[groups[i]]], 0.45, 0.15));
    paint.tokens(x, groups);
  }

  /** The energy against time: `times` and `energies` of the run so far, newest last. */
  function energy(context, box, colours, { times, energies, origin }, numberText) {
    const now = times[times.length - 1];
    const span = Math.max(8, Math.min(now, 40));
    const from = Math.max(0, now - span);
    let first = times.findIndex((t) => t >= from);
    first = Math.max(0, first - 1);
    let [low, high] = [origin, origin];
    for (let i = first; i < energies.length; i += 1) {
      low = Math.min(low, energies[i]);
      high = Math.max(high, energies[i]);
    }
    const room = Math.max(0.12 * (high - low), 1e-3 * Math.abs(high), 1e-12);
    const px = (t) => box.left + ((t - from) / span) * (box.right - box.left);
    const py = (e) =>
      box.bottom - ((e - low + room) / (high - low + 2 * room)) * (box.bottom - box.top);
    context.lineWidth = 1;
    context.strokeStyle = colours.muted;
    context.beginPath();
    context.moveTo(box.left, box.top);
    context.lineTo(box.left, box.bottom);
    context.lineTo(box.right, box.bottom);
    context.stroke();
    context.font = "11px sans-serif";
    context.fillStyle = colours.muted;
    context.textAlign = "right";
    context.fillText(numberText(high), box.left - 5, py(high) + 4);
    if (py(low) - py(high) > 14) {
      context.fillText(numberText(low), box.left - 5, py(low) + 4);
    }
    context.fillText(`time ${numberText(Number((from + span).toFixed(1)))}`, box.right, box.bottom + 14);
    context.textAlign = "left";
    context.fillText(numberText(Number(from.toFixed(1))), box.left, box.bottom + 14);
    context.fillText("energy", box.left - 40, box.top - 6);
    context.strokeStyle = colours.rejected;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(box.left, py(origin));
    context.lineTo(box.right, py(origin));
    context.stroke();
    context.setLineDash([]);
    context.strokeStyle = colours.theory;
    context.lineWidth = 2;
    context.beginPath();
    for (let i = first; i < energies.length; i += 1) {
      context.lineTo(Math.max(box.left, px(times[i])), py(energies[i]));
    }
    context.stroke();
    context.fillStyle = colours.theory;
    context.beginPath();
    context.arc(px(now), py(energies[energies.length - 1]), 3, 0, FULL);
    context.fill();
  }

  /** Everything, on a canvas of that size in CSS pixels. */
  function draw(context, width, height, view, colours, scene, numberText) {
    if (Math.min(width, height) < 60) {
      return; // not laid out yet
    }
    context.clearRect(0, 0, width, height);
    const y = (SPHERE * height) / 2;
    sphere(context, { x: width / 2, y, r: y - 20 }, view, colours, scene);
    const box = { left: 46, right: width - 12, top: SPHERE * height + 16, bottom: height - 18 };
    energy(context, box, colours, scene, numberText);
  }

  Object.assign(explorers["flow-tokens"], { draw, turned });
})();
