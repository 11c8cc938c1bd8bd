// A run that plays: lanes of members over virtual time, a moment that moves, and who owns what just then in words.
import { clock, fitted, h, number, ranges, show } from "./dom.js";

const TOP = 16, GAPS = 26, SPACE = 3, AXIS = 22, MOST_EVENTS = 6, PLAY_S = 14;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function names(run, numbers) {
  const parts = [];
  let first = 0;
  for (const [topic, size] of run.topics) {
    const mine = numbers.filter((p) => p >= first && p < first + size).map((p) => p - first);
    if (mine.length) parts.push(`${topic} ${ranges(mine)}`);
    first += size;
  }
  return parts.join(", ");
}

const holds = (start, end, at, last) => start <= at && (at < end || (at === last && end === last));
const spell = (first, n) => Array.from({ length: n }, (_, i) => first + i);

function heldAt(run, member, at) {
  return run.reads.filter(([owner, , , start, end]) => owner === member && holds(start, end, at, run.end)).flatMap(([, first, n]) => spell(first, n));
}

export class Timeline {
  constructor(place, result) {
    this.run = result.drawing;
    this.total = this.run.topics.reduce((sum, [, size]) => sum + size, 0);
    this.usual = Math.max(1, Math.ceil(this.total / Math.max(1, this.run.members.length)));
    this.at = 0;
    this.playing = false;
    this.build(place, result);
    this.draw();
    new ResizeObserver(() => this.draw()).observe(this.plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  build(place, result) {
    const { run } = this;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.plot = h("div", { class: "plot" }, this.canvas);
    this.button = h("button", { type: "button", id: "play", onclick: () => this.toggle() }, "Play");
    this.slider = h("input", { type: "range", min: "0", max: String(run.end), step: String(Math.max(1, Math.round(run.end / 1000))), "aria-label": "Moment of the run", oninput: () => this.go(Number(this.slider.value)) });
    this.slider.value = 0;
    this.clock = h("span", { class: "clock" });
    this.owners = h("ul", {});
    this.events = h("ul", {});
    this.plot.addEventListener("pointerdown", (event) => this.point(event));
    this.plot.addEventListener("pointermove", (event) => event.buttons && this.point(event));
    const costs = result.costs;
    const figures = [[`${number(costs.unowned_s)} s`, "without an owner, over all partitions"], [`${number(costs.unowned_longest_s)} s`, "longest gap of one"], [number(costs.moved), "moved"], [number(costs.rebalances), "rebalances"], [number(costs.read_twice), "records read twice"]];
    show(place,
      result.broken && h("p", { class: "problem" }, `An invariant was broken: ${result.broken.what}`),
      h("ul", { class: "figures" }, figures.map(([figure, words]) => h("li", {}, h("b", {}, figure), words))),
      h("div", { class: "player" }, this.button, this.slider, this.clock),
      this.plot,
      run.left_out ? h("p", { class: "soft small" }, `${run.left_out} more members are not drawn.`) : null,
      h("p", { class: "soft small" }, "A lane is a member, a colour is a partition; red counts partitions that nobody reads, purple marks the timeline's events."),
      h("div", { class: "moment" }, h("div", {}, h("h3", {}, "Who reads what"), this.owners), h("div", {}, h("h3", {}, "What happened"), this.events)));
    this.tell();
  }

  toggle() {
    this.playing = !this.playing;
    this.button.textContent = this.playing ? "Pause" : "Play";
    if (!this.playing) return this.tell();
    if (this.at >= this.run.end) this.at = 0;
    let last = performance.now();
    const step = (now) => {
      if (!this.playing || !this.plot.isConnected) return;
      this.go(this.at + ((now - last) / 1000) * (this.run.end / PLAY_S), false);
      last = now;
      if (this.at >= this.run.end) return this.toggle();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  point(event) {
    const box = this.plot.getBoundingClientRect();
    this.go(((event.clientX - box.left - this.left) / this.inner) * this.run.end);
  }

  go(at) {
    this.at = Math.max(0, Math.min(this.run.end, at));
    this.slider.value = this.at;
    this.draw();
    this.tell();
  }

  tell() {
    const { run, at } = this;
    this.clock.textContent = `${clock(at)} of ${clock(run.end)}`;
    this.slider.setAttribute("aria-valuetext", clock(at));
    const lost = run.gaps.filter(([, , start, end]) => holds(start, end, at, run.end)).flatMap(([first, n]) => spell(first, n));
    const lines = run.members.slice(0, 40).map((name, member) => {
      const states = run.states.filter(([one, , start, end]) => one === member && holds(start, end, at, run.end)).map(([, what]) => what);
      if (!states.length) return h("li", { class: "soft" }, `${name}: not running`);
      const still = states.find((what) => what !== "running");
      return h("li", {}, `${name}${still ? ` (${still})` : ""}: ${names(run, heldAt(run, member, at)) || "nothing"}`);
    });
    show(this.owners, lost.length ? h("li", { class: "gap" }, `nobody: ${names(run, lost)}`) : null, lines);
    const before = run.happenings.filter(([when]) => when <= at).slice(-MOST_EVENTS).reverse();
    show(this.events, before.length ? before.map(([when, kind, what]) => h("li", { class: kind === "event" ? "event" : "" }, `${clock(when)} ${what}`)) : h("li", { class: "soft" }, "nothing yet"));
  }

  draw() {
    const { run, canvas } = this, width = this.plot.clientWidth, scale = devicePixelRatio || 1;
    if (!width) return;
    this.left = width < 560 ? 84 : 130;
    this.inner = width - this.left - 12;
    const lane = Math.max(6, Math.min(26, Math.floor(420 / run.members.length) - SPACE));
    const bottom = TOP + GAPS + SPACE + run.members.length * (lane + SPACE), height = bottom + AXIS;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const x = (at) => this.left + (at / run.end) * this.inner;
    const bar = (start, end, y, tall, least) => pen.fillRect(x(start), y, Math.max(least, x(end) - x(start)), tall);
    this.drawGaps(pen, bar);
    run.members.forEach((name, member) => this.drawLane(pen, bar, name, member, TOP + GAPS + SPACE + member * (lane + SPACE), lane));
    this.drawAxis(pen, x, bottom);
  }

  label(pen, text, y, colour) {
    pen.fillStyle = colour;
    pen.textAlign = "right";
    pen.fillText(fitted(pen, text, this.left - 12), this.left - 7, y);
  }

  drawGaps(pen, bar) {
    this.label(pen, "nobody", TOP + GAPS / 2, css("--gap"));
    pen.fillStyle = css("--lane");
    bar(0, this.run.end, TOP + GAPS - 1, 1, 1);
    pen.fillStyle = css("--gap");
    const changes = this.run.gaps.flatMap(([, n, start, end]) => [[start, n], [end, -n]]).sort((a, b) => a[0] - b[0]);
    let now = 0;
    changes.forEach(([at, change], i) => {
      now += change;
      const next = changes[i + 1];
      const tall = Math.max(3, (GAPS * now) / this.total);
      if (now > 0 && next && next[0] > at) bar(at, next[0], TOP + GAPS - tall, tall, 1.2);
    });
  }

  drawLane(pen, bar, name, member, y, lane) {
    if (lane >= 9) this.label(pen, name, y + lane / 2, css("--ink"));
    pen.fillStyle = css("--lane");
    for (const [one, what, start, end] of this.run.states) if (one === member && what === "running") bar(start, end, y, lane, 0.5);
    const light = css("--l"), chroma = css("--c");
    // Each partition has its place in the lane, so that it is seen to come and go.
    const mine = [...new Set(this.run.reads.filter(([one]) => one === member).flatMap(([, first, n]) => spell(first, n)))].sort((a, b) => a - b);
    const place = new Map(mine.map((p, i) => [p, i])), each = lane / Math.max(1, mine.length);
    for (const [one, first, n, start, end] of this.run.reads) {
      if (one !== member) continue;
      for (let p = first; p < first + n; p++) {
        pen.fillStyle = `oklch(${light} ${chroma} ${20 + (320 * p) / Math.max(1, this.total)})`;
        bar(start, end, y + place.get(p) * each, Math.max(0.5, each - (each > 4 ? 0.6 : 0)), 0.5);
      }
    }
    pen.fillStyle = css("--still");
    for (const [one, what, start, end] of this.run.states) if (one === member && what !== "running") bar(start, end, y, 3, 1.2);
  }

  drawAxis(pen, x, bottom) {
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400].map((s) => s * 1000);
    const step = steps.find((ms) => (ms / this.run.end) * this.inner > 62) || 604800000;
    const line = (at, colour, width, from = TOP - 4) => {
      pen.fillStyle = colour;
      pen.fillRect(x(at) - width / 2, from, width, bottom - from);
    };
    for (let at = 0; at <= this.run.end; at += step) {
      pen.fillStyle = css("--soft");
      pen.textAlign = at === 0 ? "left" : x(at) > this.left + this.inner - 20 ? "right" : "center";
      pen.fillText(clock(at), x(at), bottom + 12);
    }
    for (const [at] of this.run.events) {
      line(at, css("--mark"), 1.5);
      pen.beginPath();
      pen.moveTo(x(at) - 5, 3);
      pen.lineTo(x(at) + 5, 3);
      pen.lineTo(x(at), 11);
      pen.fill();
    }
    // What is yet to come stands back.
    pen.globalAlpha = 0.55;
    pen.fillStyle = css("--card");
    pen.fillRect(x(this.at), TOP - 4, this.left + this.inner - x(this.at) + 1, bottom - TOP + 4);
    pen.globalAlpha = 1;
    line(this.at, css("--ink"), 2, 0);
  }
}
