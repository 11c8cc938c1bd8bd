// Elements in a line. Text is always text: a member's name can be anything.
export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}

// Objects that come from outside have names as keys, and "constructor" is a good name. So they inherit nothing, and what
// has no such key of its own gives undefined.
export function bare(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(bare);
  const made = Object.create(null);
  for (const [name, one] of Object.entries(value)) made[name] = bare(one);
  return made;
}
export const parse = (text) => bare(JSON.parse(text));

export const $ = (id) => document.getElementById(id);
export const show = (place, ...children) => place.replaceChildren(...children.flat(Infinity).filter(Boolean));
export const number = (n) => (Number.isInteger(n) ? n.toLocaleString("en") : n.toLocaleString("en", { maximumSignificantDigits: 3 }));

// Names of one group begin alike: their ends tell them apart. More than the last characters never has room.
export function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  const kept = Array.from(text.slice(-80));
  while (kept.length > 2 && pen.measureText("…" + kept.join("")).width > width) kept.shift();
  return "…" + kept.join("");
}

// 0-3 7 9-10: a share of hundreds of partitions on one line.
export function ranges(numbers) {
  const parts = [];
  const sorted = [...numbers].sort((a, b) => a - b);
  for (let i = 0; i < sorted.length; i++) {
    let j = i;
    while (sorted[j + 1] === sorted[j] + 1) j++;
    parts.push(i === j ? `${sorted[i]}` : `${sorted[i]}-${sorted[j]}`);
    i = j;
  }
  return parts.join(" ");
}
export const shareText = (share) => Object.entries(share).filter(([, p]) => p.length).map(([topic, p]) => `${topic} ${ranges(p)}`).join(", ");

export function clock(ms) {
  const s = Math.floor(ms / 1000), hours = Math.floor(s / 3600), m = Math.floor(s / 60) % 60, r = String(s % 60).padStart(2, "0");
  return (hours ? `${hours}:${String(m).padStart(2, "0")}` : m) + ":" + r;
}
