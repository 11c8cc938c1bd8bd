// A recommendation: what to take, why, how sure, what it rests on, what to paste, how to get there.
import { h, number, show } from "./dom.js";

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "still", readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1600);
}

function paste(title, settings) {
  if (!settings || !Object.keys(settings).length) return null;
  const text = Object.entries(settings).map(([name, value]) => `${name}=${value}`).join("\n");
  const button = h("button", { type: "button", "aria-label": `Copy the properties for ${title}`, onclick: () => copy(text, button) }, "Copy");
  return h("div", { class: "paste" }, h("div", { class: "paste-head" }, h("h3", {}, title), button), h("pre", {}, text));
}

function ranking(comparison) {
  const most = Math.max(...comparison.ranking.map((one) => one.score?.median ?? 0), 1e-9);
  const rows = comparison.ranking.map((one) => h("tr", { class: one.rank === 1 ? "best" : null },
    h("td", {}, one.rank === null ? "–" : `${one.rank}`), h("th", { scope: "row" }, one.strategy),
    h("td", {}, one.score ? number(one.score.median) : "broken"),
    h("td", { class: "bar-cell" }, bar(one.score ? one.score.median / most : 0)),
    h("td", {}, one.costs.unowned_s ? `${number(one.costs.unowned_s.median)} s` : ""),
    h("td", {}, one.costs.unowned_longest_s ? `${number(one.costs.unowned_longest_s.median)} s` : ""),
    h("td", {}, one.costs.moved ? number(one.costs.moved.median) : "")));
  const head = h("tr", {}, h("th", { scope: "col" }, h("span", { class: "still" }, "rank")), h("th", { scope: "col", class: "left" }, "strategy"), h("th", { scope: "col" }, "cost"), h("th", { scope: "col" }, h("span", { class: "still" }, "cost as a bar")), h("th", { scope: "col" }, "without an owner"), h("th", { scope: "col" }, "longest gap"), h("th", { scope: "col" }, "moved"));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranking" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}

function bar(share) {
  const made = h("span", { class: "bar" });
  made.style.width = `${Math.max(1, share * 100)}%`;
  return made;
}

const list = (title, items, cls = "steps") => (items.length ? [h("h3", {}, title), h("ul", { class: cls }, items.map((one) => h("li", {}, one)))] : []);

export function showAdvice(place, advice) {
  const { properties } = advice;
  show(place,
    h("div", { class: "verdict" }, h("p", { class: "big" }, advice.summary), h("p", {}, `${advice.verdict[0].toUpperCase()}${advice.verdict.slice(1)}: ${advice.sureness}`)),
    advice.notes.map((one) => h("p", { class: "warn" }, one)),
    list("Why", advice.reasons),
    h("h3", {}, "What it rests on"), ranking(advice.comparison),
    h("p", { class: "soft small" }, "Cost 1 is one partition standing still for one second; medians over the seeds."),
    advice.evidence && h("p", { class: "small" }, `Beside it, ${advice.evidence.summary}.`),
    list("Know before", advice.warnings),
    paste("Java clients", properties.java), paste("librdkafka clients", properties.librdkafka), paste("Brokers", properties.broker),
    properties.notes.map((one) => h("p", { class: "soft small" }, one)),
    advice.migration.length ? [h("h3", {}, advice.now ? `From ${advice.now} to ${advice.strategy}` : "To get there"), h("ol", { class: "steps" }, advice.migration.map((step) => h("li", {}, step.do, step.why ? h("small", {}, step.why) : null)))] : null);
}
