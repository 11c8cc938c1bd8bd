// How the charts look: colours, lanes, lag lines, axis and events on a canvas. Nothing here listens to anybody.
const TOP = 18, NOBODY = 30, LAG = 52, AXIS = 20, SPACE = 3;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let paint = {};

function readPaint() {
  for (const name of ["ink", "soft", "line", "lane", "gap", "still", "mark", "accent", "card"]) paint[name] = css("--" + name);
  paint.l = css("--l");
  paint.c = css("--c");
}
// A ramp rather than random colours: neighbours look alike, so that a stray partition stands out.
const ramp = (i, n) => `oklch(${paint.l} ${paint.c} ${(20 + (320 * i) / Math.max(1, n)).toFixed(0)})`;

function frame(one) {
  const width = one.plot.clientWidth, left = width < 560 ? 74 : 132;
  return { width, left, inner: width - left - 10 };
}

function layout(one) {
  const { run } = one, rows = [];
  let y = TOP;
  if (view.lanes === "member") {
    rows.push({ kind: "nobody", y, h: NOBODY });
    y += NOBODY + SPACE + 2;
    const h = Math.max(7, Math.min(28, Math.floor(430 / run.members.length) - SPACE));
    run.members.forEach((name, member) => {
      rows.push({ kind: "member", member, name, y, h });
      y += h + SPACE;
    });
  } else {
    const h = Math.max(0.35, Math.min(11, 430 / run.total));
    rows.push({ kind: "partitions", y, h: h * run.total, each: h });
    y += h * run.total + SPACE;
  }
  rows.push({ kind: "lag", y: y + 6, h: LAG });
  y += 6 + LAG;
  return { ...frame(one), height: y + AXIS, rows, bottom: y };
}

const xOf = (shape, at) => shape.left + ((at - view.from) / (view.to - view.from)) * shape.inner;
const timeAt = (shape, x) => Math.min(view.to, Math.max(view.from, view.from + ((x - shape.left) / shape.inner) * (view.to - view.from)));

function draw(one) {
  const shape = (one.shape = one.layout(one)), scale = window.devicePixelRatio || 1, { run, canvas } = one;
  canvas.width = Math.round(shape.width * scale);
  canvas.height = Math.round(shape.height * scale);
  canvas.style.height = shape.height + "px";
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  for (const row of shape.rows) one.drawers[row.kind](pen, shape, row, run, one);
  drawAxis(pen, shape);
  drawEvents(pen, shape, run);
  if (view.at !== null) line(pen, xOf(shape, view.at), TOP - 4, shape.bottom, paint.ink, []);
  if (one.drag) {
    pen.globalAlpha = 0.18;
    pen.fillStyle = paint.accent;
    pen.fillRect(Math.min(one.drag.x, one.drag.now), TOP, Math.abs(one.drag.now - one.drag.x), shape.bottom - TOP);
    pen.globalAlpha = 1;
  }
}

// Time that is seen at least: a gap of a tenth of a second must not vanish between two pixels.
function bar(pen, shape, start, end, y, h, least) {
  if (end <= view.from || start >= view.to) return;
  const a = Math.max(shape.left, xOf(shape, start)), b = Math.min(shape.left + shape.inner, xOf(shape, end));
  pen.fillRect(a, y, Math.max(least || 0.35, b - a), h);
}

// Names of one group begin alike: their ends tell them apart. More than the last characters never has room.
function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  const kept = Array.from(text.slice(-80));
  while (kept.length > 2 && pen.measureText("…" + kept.join("")).width > width) kept.shift();
  return "…" + kept.join("");
}

function label(pen, shape, text, y, colour) {
  pen.fillStyle = colour;
  pen.textAlign = "right";
  pen.fillText(fitted(pen, text, shape.left - 12), shape.left - 7, y);
}

const DRAW = {
  nobody(pen, shape, row, run) {
    label(pen, shape, "nobody", row.y + row.h / 2, run.gaps.length ? paint.gap : paint.soft);
    pen.fillStyle = paint.lane;
    pen.fillRect(shape.left, row.y + row.h - 1, shape.inner, 1);
    pen.fillStyle = paint.gap;
    for (const [start, end, n] of run.unowned) {
      const h = Math.max(3, (row.h * n) / run.total);
      bar(pen, shape, start, end, row.y + row.h - h, h, 1.2);
    }
  },
  member(pen, shape, row, run, one) {
    const chosen = one.plot === document.activeElement && shape.rows[one.lane] === row;
    // Lanes this thin have room for every second name; the tip has them all.
    if (row.h >= 9 || row.member % 2 === 0) label(pen, shape, row.name, row.y + row.h / 2, chosen ? paint.accent : paint.ink);
    const states = run.states.filter(([member]) => member === row.member);
    pen.fillStyle = paint.lane;
    for (const [, what, start, end] of states) if (what === "running") bar(pen, shape, start, end, row.y, row.h);
    for (const [start, end, held] of run.stretches[row.member]) {
      if (end <= view.from || start >= view.to) continue;
      // By the root: a tenth of the usual share is still seen, and more is still more.
      const each = (row.h * Math.sqrt(Math.min(1, held.length / run.share))) / held.length;
      for (let i = 0; i < held.length; ) {
        let j = i + 1;
        // Strips thinner than a pixel are painted together where their colours are alike.
        while (j < held.length && (j - i) * each < 1 && held[j] === held[j - 1] + 1) j++;
        pen.fillStyle = ramp(held[i], run.total);
        bar(pen, shape, start, end, row.y + row.h - each * j, each * (j - i) - (each > 4 ? 0.6 : 0));
        i = j;
      }
    }
    pen.fillStyle = paint.still;
    for (const [, what, start, end] of states) {
      if (what === "running") continue;
      pen.globalAlpha = 0.3;
      bar(pen, shape, start, end, row.y, row.h, 1.2);
      pen.globalAlpha = 1;
      bar(pen, shape, start, end, row.y, 2.5, 1.2);
    }
  },
  partitions(pen, shape, row, run) {
    pen.fillStyle = paint.lane;
    pen.fillRect(shape.left, row.y, shape.inner, row.h);
    const thin = row.each > 4 ? 0.8 : 0;
    for (const [member, first, n, start, end] of run.reads) {
      pen.fillStyle = ramp(member, run.members.length);
      for (let p = first; p < first + n; p++) bar(pen, shape, start, end, row.y + p * row.each, row.each - thin);
    }
    pen.fillStyle = paint.gap;
    for (const [first, n, start, end] of run.gaps) bar(pen, shape, start, end, row.y + first * row.each, n * row.each - thin, 1.2);
    let first = 0;
    for (const [topic, size] of run.topics) {
      if (size * row.each > 9) label(pen, shape, topic, row.y + (first + size / 2) * row.each, paint.ink);
      if (first) line(pen, null, 0, 0, paint.ink, [], [shape.left, row.y + first * row.each, shape.left + shape.inner]);
      first += size;
    }
  },
  lag(pen, shape, row, run) {
    const top = Math.max(peak(run), run.lag.reduce((most, [, n]) => Math.max(most, n / 10), 1));
    label(pen, shape, "lag", row.y + row.h / 2 - 8, paint.soft);
    label(pen, shape, "≤ " + count(peak(run)), row.y + row.h / 2 + 8, paint.soft);
    lagLine(pen, shape, row, run, top, paint.accent, 1.5, true);
  },
};

function lagLine(pen, shape, row, run, top, colour, width, filled) {
  const y = (n) => row.y + row.h - (Math.min(n, top) / top) * (row.h - 2);
  const path = new Path2D();
  run.lag.forEach(([at, n], i) => (i ? path.lineTo(xOf(shape, at), y(n)) : path.moveTo(xOf(shape, at), y(n))));
  pen.save();
  pen.beginPath();
  pen.rect(shape.left, row.y - 1, shape.inner, row.h + 2);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.stroke(path);
  if (filled && run.lag.length) {
    path.lineTo(xOf(shape, run.lag[run.lag.length - 1][0]), row.y + row.h);
    path.lineTo(xOf(shape, 0), row.y + row.h);
    pen.globalAlpha = 0.18;
    pen.fillStyle = colour;
    pen.fill(path);
  }
  pen.restore();
}

function line(pen, x, y0, y1, colour, dash, level) {
  pen.beginPath();
  pen.setLineDash(dash);
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  if (level) {
    pen.moveTo(level[0], level[1]);
    pen.lineTo(level[2], level[1]);
  } else {
    if (x < 0) return;
    pen.moveTo(x, y0);
    pen.lineTo(x, y1);
  }
  pen.stroke();
  pen.setLineDash([]);
}

function drawAxis(pen, shape) {
  const hour = 3600, day = 24 * hour;
  const short = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, hour, 2 * hour, 4 * hour, 6 * hour, day / 2];
  const steps = [...short, ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000].map((days) => days * day)].map((s) => s * 1000);
  // The last one may be moved to the left by half of itself.
  const room = Math.max(62, pen.measureText(clock(view.to)).width * 1.5 + 6);
  const step = steps.find((ms) => (ms / (view.to - view.from)) * shape.inner > room) || steps.at(-1);
  pen.fillStyle = paint.soft;
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = xOf(shape, at), text = clock(at, step < 1000), edge = shape.width - 4;
    line(pen, x, TOP, shape.bottom, paint.line, [1, 3]);
    const isLast = x + pen.measureText(text).width / 2 > edge;
    pen.textAlign = isLast ? "right" : "center";
    pen.fillText(text, isLast ? edge : x, shape.bottom + 11);
  }
}

function drawEvents(pen, shape, run) {
  for (const [at] of run.events) {
    if (at < view.from || at > view.to) continue;
    const x = xOf(shape, at);
    line(pen, x, TOP - 4, shape.bottom, paint.mark, [3, 3]);
    pen.fillStyle = paint.mark;
    pen.beginPath();
    pen.moveTo(x - 5, 4);
    pen.lineTo(x + 5, 4);
    pen.lineTo(x, 13);
    pen.fill();
  }
}

function drawLags(pen, shape, row, _, one) {
  const top = Math.max(1, ...runs.map(peak));
  label(pen, shape, count(top), row.y + 6, paint.soft);
  label(pen, shape, "0", row.y + row.h - 4, paint.soft);
  runs.forEach((run, i) => {
    const colour = ramp(i, runs.length);
    one.swatches[i].style.background = colour;
    lagLine(pen, shape, row, run, top, colour, 2);
  });
}
