// The figures on the page and what one can do with them: point, tap, drag, keys, the tools above.
const charts = document.getElementById("charts");
const tip = document.getElementById("tip");

function figure(run, drawers, shape) {
  const box = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const title = document.createElement("h3");
  title.className = "mono";
  title.textContent = run.strategy;
  const words = document.createElement("span");
  words.className = "hint";
  words.textContent = run.summary;
  caption.append(title, words);
  const plot = document.createElement("div");
  plot.className = "plot";
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", `Ownership timeline of ${run.strategy}: ${run.summary}`);
  plot.setAttribute("aria-describedby", "keys");
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  plot.append(canvas);
  box.append(caption, plot);
  if (run.left_out) {
    const note = document.createElement("p");
    note.className = "hint";
    note.textContent = `${run.left_out} more members are not drawn: by partition, what they read is grey.`;
    box.append(note);
  }
  charts.append(box);
  const one = { run, plot, canvas, box, caption, lane: 0, drawers, layout: shape };
  listen(one);
  return one;
}

// All strategies on one scale, where the single charts each have their own.
function lagOfAll() {
  const all = { strategy: "Lag of all strategies", summary: "records written and not processed yet, on one scale", events: data.events };
  const height = 170;
  const one = figure(all, { all: drawLags }, (one) => {
    const base = frame(one);
    return { ...base, height: TOP + height + AXIS, bottom: TOP + height, rows: [{ kind: "all", y: TOP, h: height }] };
  });
  one.plot.setAttribute("aria-label", "Lag of all strategies");
  const list = document.createElement("ul");
  list.className = "legend";
  one.swatches = runs.map((run) => {
    const item = document.createElement("li"), swatch = document.createElement("span");
    swatch.className = "swatch";
    item.append(swatch, run.strategy);
    list.append(item);
    return swatch;
  });
  one.box.append(list);
  return one;
}

function showTip(one, x, y, clientX, clientY) {
  const shape = one.shape, at = timeAt(shape, x);
  const row = shape.rows.find((r) => y >= r.y - 2 && y <= r.y + r.h + 2);
  if (row && row.kind === "partitions") row.partition = Math.floor((y - row.y) / row.each);
  const near = ((view.to - view.from) / shape.inner) * 7;
  tip.replaceChildren();
  const when = document.createElement("b");
  when.textContent = clock(at, true);
  tip.append(when);
  for (const text of tell(one, row, at, near)) {
    const part = document.createElement("div");
    part.textContent = text;
    tip.append(part);
  }
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (clientY + 18 + box.height > innerHeight ? Math.max(8, clientY - box.height - 12) : clientY + 18) + "px";
  view.at = at;
  redraw();
}

function hideTip() {
  tip.style.display = "none";
  view.at = null;
  redraw();
}

function listen(one) {
  const { plot } = one;
  const place = (event) => {
    const box = plot.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  plot.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (one.drag) one.drag.now = Math.max(one.shape.left, Math.min(x, one.shape.left + one.shape.inner));
    showTip(one, x, y, event.clientX, event.clientY);
  });
  plot.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    if (event.pointerType === "mouse") {
      one.drag = { x: Math.max(one.shape.left, x), now: Math.max(one.shape.left, x) };
      plot.setPointerCapture(event.pointerId);
    }
    showTip(one, x, y, event.clientX, event.clientY);
  });
  plot.addEventListener("pointerup", () => {
    const drag = one.drag;
    one.drag = null;
    if (drag && Math.abs(drag.now - drag.x) > 6) zoomTo(timeAt(one.shape, Math.min(drag.x, drag.now)), timeAt(one.shape, Math.max(drag.x, drag.now)));
    else redraw();
  });
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hideTip());
  plot.addEventListener("dblclick", () => zoomTo(0, data.end));
  plot.addEventListener("blur", hideTip);
  plot.addEventListener("focus", redraw);
  plot.addEventListener("keydown", (event) => {
    const step = (view.to - view.from) / (event.shiftKey ? 400 : 60);
    const at = view.at === null ? (view.from + view.to) / 2 : view.at;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (moves[event.key]) {
      one.lane = Math.max(0, Math.min(one.shape.rows.length - 1, one.lane + moves[event.key][1]));
      const row = one.shape.rows[one.lane], box = plot.getBoundingClientRect();
      const x = xOf(one.shape, Math.max(view.from, Math.min(view.to, at + moves[event.key][0]))), y = row.y + row.h / 2;
      showTip(one, x, y, box.left + x, box.top + y);
    } else if (event.key === "Escape") hideTip();
    else if (KEYS[event.key]) KEYS[event.key](at);
    else return;
    event.preventDefault();
  });
}

const KEYS = { "+": (at) => zoomBy(0.5, at), "=": (at) => zoomBy(0.5, at), "-": (at) => zoomBy(2, at), 0: () => zoomTo(0, data.end) };

function zoomTo(from, to) {
  const least = Math.min(200, data.end), width = Math.min(data.end, Math.max(least, to - from));
  view.from = Math.max(0, Math.min(from, data.end - width));
  view.to = view.from + width;
  document.getElementById("range").textContent = `${clock(view.from)} to ${clock(view.to)} of ${clock(data.end)}`;
  redraw();
}
const zoomBy = (factor, at) => zoomTo(at - (at - view.from) * factor, at + (view.to - at) * factor);

let asked = false;
function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    figures.forEach(draw);
  });
}

const middle = () => (view.from + view.to) / 2, part = () => (view.to - view.from) / 3;
const buttons = {
  in: () => zoomBy(0.5, middle()),
  out: () => zoomBy(2, middle()),
  left: () => zoomTo(view.from - part(), view.to - part()),
  right: () => zoomTo(view.from + part(), view.to + part()),
  all: () => zoomTo(0, data.end),
};
document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", buttons[button.dataset.do]));
document.querySelectorAll("[name=lanes]").forEach((choice) =>
  choice.addEventListener("change", () => {
    view.lanes = choice.value;
    figures.forEach((one) => (one.lane = 0));
    redraw();
  }),
);
const jump = document.getElementById("jump");
for (const [at, text] of data.events) jump.append(new Option(`${clock(at)} ${text}`, at));
jump.hidden = !data.events.length;
jump.addEventListener("change", () => {
  const at = Number(jump.value), around = Math.max(10000, data.end / 40);
  if (jump.value !== "") zoomTo(at - around / 4, at + around);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (readPaint(), redraw()));
addEventListener("resize", redraw);
addEventListener("scroll", () => tip.style.display !== "none" && hideTip(), { passive: true });

const figures = runs.map((run) => figure(run, DRAW, layout));
figures.push(lagOfAll());
readPaint();
zoomTo(data.from, data.to);
