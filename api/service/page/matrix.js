// An assignment as a matrix: a row a member, a column a partition; what it keeps, gets and gives up.
import { h, number, ranges, shareText, show } from "./dom.js";

const MOST_CELLS = 6000, MOST_COLUMNS = 240, MOST_MOVES = 400;
const SIGN = { kept: "●", got: "+", lost: "−", none: "" };
const WORD = { kept: "keeps", got: "gets", lost: "gives up", none: "" };

const owns = (share, topic, p) => (share?.[topic] || []).includes(p);

function stateOf(before, after, topic, p) {
  const was = owns(before, topic, p), is = owns(after, topic, p);
  return was && is ? "kept" : is ? "got" : was ? "lost" : "none";
}

function figures(row) {
  const told = [
    [`${number(row.assigned)} of ${number(row.partitions)}`, "partitions assigned"],
    [row.min === row.max ? number(row.min) : `${number(row.min)} to ${number(row.max)}`, "a member"],
  ];
  if (row.kept || row.moved || row.revoked) {
    told.push([number(row.kept), "kept"], [number(row.moved), row.needlessly_moved ? `moved, ${number(row.needlessly_moved)} needlessly` : "moved"]);
    if (row.revoked) told.push([number(row.revoked), "given up first"]);
  }
  if (row.rack_local !== null) told.push([`${Math.round(row.rack_local * 100)} %`, "in the member's rack"]);
  if (row.load_skew !== null) told.push([number(row.load_skew), "load skew (1 is even)"]);
  return h("ul", { class: "figures" }, told.map(([figure, words]) => h("li", {}, h("b", {}, figure), words)));
}

function table(group, assignment, columns) {
  const topics = Object.entries(group.topics).filter(([, one]) => one.partitions);
  const first = (p) => (p === 0 ? "first" : null);
  const head = h("thead", {},
    h("tr", {}, h("td", {}), topics.map(([name, one]) => h("th", { class: "topic", colspan: one.partitions, scope: "colgroup" }, name)), h("td", {})),
    h("tr", {}, h("th", { scope: "col", class: "left" }, "member"), columns.map(([topic, p]) => h("th", { scope: "col", class: first(p) }, h("span", { class: "still" }, `${topic} `), `${p}`)), h("th", { scope: "col", class: "count" }, "has")));
  const rows = Object.keys(assignment).map((member) => {
    const before = group.members[member]?.owned, after = assignment[member];
    const count = Object.values(after).reduce((sum, one) => sum + one.length, 0);
    return h("tr", {}, h("th", { scope: "row", title: member }, member), columns.map(([topic, p]) => {
      const state = stateOf(before, after, topic, p);
      return h("td", { class: first(p) }, h("span", { class: `cell ${state}`, title: WORD[state] ? `${member} ${WORD[state]} ${topic} ${p}` : null }, h("span", { "aria-hidden": "true" }, SIGN[state]), h("span", { class: "still" }, WORD[state])));
    }), h("td", { class: "count" }, number(count)));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The assignment as a matrix" }, h("table", { class: "matrix" }, head, h("tbody", {}, rows)));
}

// Thousands of partitions are not a matrix any more.
function list(group, assignment) {
  const rows = Object.entries(assignment).slice(0, 1000).map(([member, share]) => {
    const count = Object.values(share).reduce((sum, one) => sum + one.length, 0);
    return h("tr", {}, h("th", { scope: "row" }, member), h("td", {}, number(count)), h("td", { class: "left" }, shareText(share) || "nothing"));
  });
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "left" }, "member"), h("th", { scope: "col" }, "has"), h("th", { scope: "col", class: "left" }, "partitions")));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The assignment as a list" }, h("table", {}, head, h("tbody", {}, rows)));
}

function moves(group, assignment) {
  const to = new Map(), found = [];
  for (const [member, share] of Object.entries(assignment)) for (const [topic, ps] of Object.entries(share)) for (const p of ps) to.set(`${topic} ${p}`, member);
  for (const [member, one] of Object.entries(group.members)) {
    const gone = new Map();
    for (const [topic, ps] of Object.entries(one.owned || {})) for (const p of ps) {
      const now = to.get(`${topic} ${p}`);
      if (now === member) continue;
      const key = JSON.stringify([topic, now ?? null]);
      gone.set(key, [...(gone.get(key) || []), p]);
    }
    for (const [key, ps] of gone) {
      const [topic, now] = JSON.parse(key);
      found.push(`${topic} ${ranges(ps)}: ${member} → ${now ?? "nobody yet"}`);
    }
  }
  return found;
}

export function showAssignment(place, group, answer) {
  const columns = Object.entries(group.topics).flatMap(([topic, one]) => (one.partitions <= MOST_COLUMNS ? Array.from({ length: one.partitions }, (_, p) => [topic, p]) : [[topic, -1]]));
  const total = Object.values(group.topics).reduce((sum, one) => sum + one.partitions, 0);
  const small = total <= MOST_COLUMNS && total * Object.keys(answer.assignment).length <= MOST_CELLS;
  const found = moves(group, answer.assignment);
  const owned = Object.values(group.members).some((one) => Object.keys(one.owned || {}).length);
  show(place,
    figures(answer.quality),
    small ? table(group, answer.assignment, columns) : list(group, answer.assignment),
    small && owned && h("ul", { class: "legend" }, ["kept", "got", "lost"].map((state) => h("li", {}, h("span", { class: `cell ${state}`, "aria-hidden": "true" }, SIGN[state]), WORD[state]))),
    owned && h("details", { open: found.length <= 24 && found.length > 0 }, h("summary", {}, found.length ? `${number(found.length)} ${found.length === 1 ? "move" : "moves"} from what is owned now` : "Nothing moves from what is owned now"),
      h("ul", { class: "moves" }, found.slice(0, MOST_MOVES).map((one) => h("li", {}, one)))));
}
