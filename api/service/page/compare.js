// Strategies side by side on one group: what each member has, what is kept, what moves.
import { h, number, show } from "./dom.js";

const COLUMNS = [
  ["a member has", (q) => (q.min === q.max ? number(q.min) : `${number(q.min)} to ${number(q.max)}`)],
  ["kept", (q) => number(q.kept)],
  ["moved", (q) => number(q.moved)],
  ["needlessly", (q) => number(q.needlessly_moved)],
  ["given up first", (q) => number(q.revoked)],
  ["in rack", (q) => (q.rack_local === null ? null : `${Math.round(q.rack_local * 100)} %`)],
  ["load skew", (q) => (q.load_skew === null ? null : number(q.load_skew))],
];

export function showComparison(place, answer, choose) {
  const good = answer.results.filter((one) => one.quality);
  const columns = COLUMNS.filter(([, cell]) => good.some((one) => cell(one.quality) !== null));
  const head = h("tr", {}, h("th", { scope: "col", class: "left" }, "strategy"), columns.map(([title]) => h("th", { scope: "col" }, title)), h("th", { scope: "col" }, h("span", { class: "still" }, "look")));
  const rows = answer.results.map((one) => h("tr", {}, h("th", { scope: "row" }, one.strategy),
    one.error ? h("td", { class: "left", colspan: columns.length + 1 }, one.error.message) : [
      columns.map(([, cell]) => h("td", {}, cell(one.quality) ?? "")),
      h("td", {}, h("button", { type: "button", class: "linkish", "aria-label": `Show the assignment of ${one.strategy}`, onclick: () => choose(one.strategy) }, "show")),
    ]));
  const apart = answer.differences.length;
  show(place,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Strategies side by side" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows))),
    h("p", { class: "soft small" }, apart ? `${number(apart)} partitions do not go to the same member everywhere. ` : "All of them give the same answer. ", "A cooperative strategy gives partitions up first and hands them on in a second round."));
}
