// The group: rows of a form, or text. Both say the same; the form is for what it can hold, the text for everything.
import { $, bare, h, parse, ranges, show } from "./dom.js";

export const EXAMPLES = bare({
  fourth: {
    topics: { orders: { partitions: 8 }, payments: { partitions: 4 } },
    members: {
      "pod-a": { topics: ["orders", "payments"], owned: { orders: [0, 1, 2], payments: [0] }, generation: 7 },
      "pod-b": { topics: ["orders", "payments"], owned: { orders: [3, 4, 5], payments: [1] }, generation: 7 },
      "pod-c": { topics: ["orders", "payments"], owned: { orders: [6, 7], payments: [2, 3] }, generation: 7 },
      "pod-d": { topics: ["orders", "payments"] },
    },
  },
  uneven: {
    topics: { clicks: { partitions: 6, load: [80, 10, 10, 40, 10, 10], racks: [["a"], ["b"], ["a"], ["b"], ["a"], ["b"]] } },
    members: { "east-1": { topics: ["clicks"], rack: "a" }, "west-1": { topics: ["clicks"], rack: "b" }, "west-2": { topics: ["clicks"], rack: "b" } },
  },
  deploy: `name: a rolling deploy
duration: 8m
strategy: classic/range
topics:
  orders: {partitions: 12, rate: 600/s}
members:
  consumer: {count: 4, topics: orders, record: 2ms}
timeline:
  - {at: 2m, rolling restart: {downtime: 15s, gap: 15s}}
`,
  crash: `name: a crash and a slow member
duration: 6m
strategy: classic/cooperative-sticky
topics:
  invoices: {partitions: 9, rate: 300/s}
members:
  consumer: {count: 3, topics: invoices, record: 2ms}
timeline:
  - {at: 1m, crash: consumer-1}
  - {at: 2m30s, start: consumer-1}
  - {at: 4m, pause: {members: consumer-2, for: 20s}}
`,
});

const NUMBERS = /^(\d+)(?:-(\d+))?$/;
const names = (text) => text.split(/[,\s]+/).filter(Boolean);

// "orders 0-2 5, payments 1" as the command line prints shares.
function parseShare(text) {
  const owned = bare({});
  for (const part of text.split(",").map((one) => one.trim()).filter(Boolean)) {
    const [topic, ...numbers] = part.split(/\s+/);
    owned[topic] = numbers.flatMap((one) => {
      const found = NUMBERS.exec(one);
      if (!found) throw new Error(`${part}: write partitions as 0-2 5`);
      const first = Number(found[1]), last = Number(found[2] ?? found[1]);
      if (last - first > 100000) throw new Error(`${part}: that is a long range`);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
  }
  return owned;
}

function cell(label, value, props = {}, extra = "") {
  const input = h("input", { type: "text", spellcheck: "false", autocapitalize: "off", "aria-label": label, ...props });
  input.value = value;
  return h("div", { class: extra }, h("label", { "aria-hidden": "true" }, label), input);
}

function removeButton(what) {
  return h("button", { type: "button", class: "remove", "aria-label": `Remove ${what}`, onclick: (event) => {
    const row = event.target.closest("li"), near = row.nextElementSibling || row.previousElementSibling;
    row.remove();
    (near?.querySelector("input") || $("add-topic")).focus();
    $("form").dispatchEvent(new Event("input", { bubbles: true }));
  } }, "✕");
}

const topicRow = (name, partitions) => h("li", { class: "topic" },
  cell("Topic", name), cell("Partitions", partitions, { type: "number", min: "0", inputmode: "numeric" }), removeButton("the topic"));
const memberRow = (name, topics, owned) => h("li", { class: "member" },
  cell("Member", name), cell("Subscribes to", topics), removeButton("the member"),
  cell("Owns now", owned, { placeholder: "nothing, or orders 0-2" }, "wide"));

export function addTopic() {
  const row = topicRow(`topic-${$("topics").children.length + 1}`, 6);
  $("topics").append(row);
  row.querySelector("input").select();
}

export function addMember() {
  const topics = [...$("topics").children].map((row) => row.querySelector("input").value).join(", ");
  const row = memberRow(`member-${$("members").children.length + 1}`, topics, "");
  $("members").append(row);
  row.querySelector("input").select();
}

// What the form does not show (racks, load, capacity) is kept by name.
let shown = bare({ topics: {}, members: {} });

export function fillForm(group) {
  shown = group;
  show($("topics"), Object.entries(group.topics).map(([name, one]) => topicRow(name, one.partitions)));
  show($("members"), Object.entries(group.members).map(([name, one]) => {
    const owned = Object.entries(one.owned || {}).map(([topic, p]) => `${topic} ${ranges(p)}`).join(", ");
    return memberRow(name, one.topics.join(", "), owned);
  }));
}

export function readForm() {
  const group = bare({ topics: {}, members: {} });
  const values = (row) => [...row.querySelectorAll("input")].map((one) => one.value.trim());
  for (const row of $("topics").children) {
    const [name, partitions] = values(row);
    if (name in group.topics) throw new Error(`the topic ${name} stands twice`);
    const kept = shown.topics[name] || {};
    const same = kept.partitions === Number(partitions);
    group.topics[name] = same ? kept : { partitions: Number(partitions), ...(kept.id ? { id: kept.id } : {}) };
  }
  for (const row of $("members").children) {
    const [name, topics, owns] = values(row);
    if (name in group.members) throw new Error(`the member ${name} stands twice`);
    const { owned: _, topics: __, ...kept } = shown.members[name] || {};
    const owned = parseShare(owns);
    group.members[name] = { topics: names(topics), ...(Object.keys(owned).length ? { owned } : {}), ...kept };
  }
  return group;
}

// What a text holds: a group that the form can show, or a scenario that only runs and recommendations take.
export function readText(text) {
  if (!text.trim()) throw new Error("there is nothing yet: paste a group or a scenario");
  if (!text.trimStart().startsWith("{")) return { kind: "scenario", text };
  const data = parse(text);
  const group = data.group || data.snapshot?.group || data.snapshot || data;
  if (data.duration === undefined && group.topics && group.members) return { kind: "group", group, strategy: data.strategy };
  return { kind: "scenario", text };
}
