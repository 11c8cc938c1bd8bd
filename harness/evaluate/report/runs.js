// What the charts know: the runs from the JSON in #data, and what there is to say about a moment. No drawing.
const data = JSON.parse(document.getElementById("data").textContent);
const view = { from: data.from, to: data.to, lanes: "member", at: null };

const clock = (ms, fine) => {
  const s = Math.floor(ms / 1000), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60, r = String(s % 60).padStart(2, "0");
  const rest = fine ? "." + String(Math.floor(ms % 1000)).padStart(3, "0") : "";
  return (h ? h + ":" + String(m).padStart(2, "0") : m) + ":" + r + rest;
};
const count = (n) => n.toLocaleString("en");

// Partitions are numbered through all topics; people know them as topic and number.
function names(run, numbers) {
  const parts = [];
  let first = 0;
  for (const [topic, size] of run.topics) {
    const mine = numbers.filter((p) => p >= first && p < first + size).map((p) => p - first).sort((a, b) => a - b);
    first += size;
    const shown = [];
    for (let i = 0; i < mine.length; i++) {
      let j = i;
      while (mine[j + 1] === mine[j] + 1) j++;
      shown.push(i === j ? mine[i] : mine[i] + "–" + mine[j]);
      i = j;
    }
    if (shown.length) parts.push(topic + " " + (shown.length > 14 ? shown.slice(0, 14).join(" ") + " …" : shown.join(" ")));
  }
  return parts.join(", ");
}

const spell = (first, n) => Array.from({ length: n }, (_, i) => first + i);

// Stretches of time in which a member's partitions stay the same.
function stretches(run) {
  return run.members.map((_, member) => {
    const changes = [];
    for (const [owner, first, n, start, end] of run.reads) {
      if (owner !== member) continue;
      changes.push([start, 1, first, n], [end, 0, first, n]);
    }
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const found = [], held = new Set();
    for (let i = 0; i < changes.length; i++) {
      const [at, adds, first, n] = changes[i];
      for (let p = first; p < first + n; p++) adds ? held.add(p) : held.delete(p);
      const next = changes[i + 1];
      if (next && next[0] > at && held.size) found.push([at, next[0], [...held].sort((a, b) => a - b)]);
    }
    return found;
  });
}

// The share that counts: what members have for more than a fiftieth of the run, not the moment when one has all.
function usualShare(run) {
  const time = new Map();
  for (const one of run.stretches) for (const [start, end, held] of one) time.set(held.length, (time.get(held.length) || 0) + end - start);
  const floor = (run.end * run.members.length) / 200;
  return Math.max(1, ...[...time].filter(([, ms]) => ms > floor).map(([n]) => n));
}

function unowned(run) {
  const changes = [];
  for (const [, n, start, end] of run.gaps) changes.push([start, n], [end, -n]);
  changes.sort((a, b) => a[0] - b[0]);
  const found = [];
  let now = 0;
  changes.forEach(([at, change], i) => {
    now += change;
    const next = changes[i + 1];
    if (now > 0 && next && next[0] > at) found.push([at, next[0], now]);
  });
  return found;
}

const runs = data.runs.map((run) => {
  run.stretches = stretches(run);
  run.share = usualShare(run);
  run.unowned = unowned(run);
  run.total = run.topics.reduce((sum, [, size]) => sum + size, 0);
  return run;
});
// Its start is left out: every group is behind before it has formed.
const peak = (run) => run.lag.reduce((most, [at, n]) => (at >= data.from ? Math.max(most, n) : most), 0);
const lagAt = (run, at) => run.lag.reduce((best, one) => (Math.abs(one[0] - at) < Math.abs(best[0] - at) ? one : best), [-1e12, 0])[1];

// What is there at a moment, in words: for the tip and for screen readers.
function tell(one, row, at, near) {
  const { run } = one, lines = [];
  const event = run.events.filter(([when]) => Math.abs(when - at) <= near).sort((a, b) => Math.abs(a[0] - at) - Math.abs(b[0] - at))[0];
  if (event) lines.push(`${clock(event[0])} ${event[1]}`);
  const here = ([start, end]) => start <= at && at < end;
  if (row && row.kind === "member") {
    const state = run.states.filter(([m, , start, end]) => m === row.member && here([start, end])).map(([, what]) => what);
    const held = run.stretches[row.member].find(here);
    const still = state.find((what) => what !== "running");
    lines.push(row.name + (state.length ? (still ? ", " + still : "") : " does not run"));
    if (state.length) lines.push(held ? "reads " + names(run, held[2]) : "reads nothing");
  } else if (row && row.kind === "nobody") {
    const lost = run.gaps.filter(([, , start, end]) => here([start, end])).flatMap(([first, n]) => spell(first, n));
    lines.push(lost.length ? `${lost.length} without an owner: ${names(run, lost)}` : "every partition has an owner");
  } else if (row && row.kind === "partitions") {
    const p = Math.max(0, Math.min(run.total - 1, row.partition));
    const owner = run.reads.find(([, first, n, start, end]) => p >= first && p < first + n && here([start, end]));
    const lost = run.gaps.some(([first, n, start, end]) => p >= first && p < first + n && here([start, end]));
    const nobody = run.left_out && !lost ? "no owner, or one that is not drawn" : "no owner";
    lines.push(`${names(run, [p])}: ${owner ? run.members[owner[0]] : nobody}`);
  } else if (row && row.kind === "all") {
    for (const each of runs) lines.push(`${each.strategy}: ${count(lagAt(each, at))}`);
  } else if (row) {
    lines.push(`${count(lagAt(run, at))} records wait`);
  }
  return lines;
}
