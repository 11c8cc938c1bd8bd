// The page: one document on the left, four questions about it on the right.
import { follow, get, onTokenNeeded, post, Problem, remove, useToken } from "./api.js";
import { showAdvice } from "./advice.js";
import { showComparison } from "./compare.js";
import { $, h, show } from "./dom.js";
import { addMember, addTopic, EXAMPLES, fillForm, readForm, readText } from "./group.js";
import { showAssignment } from "./matrix.js";
import { Timeline } from "./timeline.js";

const TABS = ["assign", "compare", "simulate", "recommend"];
const PAUSE_MS = 250;
let asked = 0, timer = 0, job = null, infos = [];

// The document

const how = () => document.querySelector("[name=how]:checked").value;

function current() {
  return how() === "form" ? { kind: "group", group: readForm() } : readText($("document").value);
}

function read() {
  try {
    const found = current();
    $("document-problem").textContent = "";
    return found;
  } catch (error) {
    $("document-problem").textContent = error instanceof SyntaxError ? `not JSON yet: ${error.message}` : error.message;
    return null;
  }
}

function setDocument(document) {
  if (typeof document === "string") {
    let found = null;
    try {
      found = readText(document);
    } catch {
      found = { kind: "scenario" };
    }
    $("document").value = document;
    setHow(found.kind === "group" && how() === "form" ? "form" : "text", found.group);
    if (found.strategy) choose(found.strategy);
  } else {
    $("document").value = JSON.stringify(document, null, 2);
    setHow(how(), document);
  }
  changed(0);
}

function setHow(which, group) {
  document.querySelector(`[name=how][value=${which}]`).checked = true;
  $("form").hidden = which !== "form";
  $("text").hidden = which === "form";
  if (which === "form" && group) fillForm(group);
}

function switchHow() {
  const which = how();
  if (which === "text") {
    try {
      $("document").value = JSON.stringify(readForm(), null, 2);
    } catch (error) {
      $("document-problem").textContent = error.message;
    }
    setHow("text");
  } else {
    const found = $("document").value.trim() ? tryText() : null;
    if (found?.kind !== "group") {
      setHow("text");
      $("document-problem").textContent = "The form shows groups; a scenario stays as text.";
      return;
    }
    setHow("form", found.group);
  }
  changed(0);
}

function tryText() {
  try {
    return readText($("document").value);
  } catch {
    return null;
  }
}

// The answers

const selected = () => TABS.find((name) => $(`tab-${name}`).getAttribute("aria-selected") === "true");

function select(name, focus) {
  for (const one of TABS) {
    const on = one === name;
    $(`tab-${one}`).setAttribute("aria-selected", String(on));
    $(`tab-${one}`).tabIndex = on ? 0 : -1;
    $(`panel-${one}`).hidden = !on;
  }
  if (focus) $(`tab-${name}`).focus();
  changed(0);
}

function changed(after = PAUSE_MS) {
  clearTimeout(timer);
  timer = setTimeout(answer, after);
}

async function answer() {
  const found = read(), mine = ++asked, which = selected();
  if (!found) return;
  $("life-note").textContent = found.kind === "group" ? "Only its present is known, so a life is assumed: a rolling deploy, a crash, and a tenth more members." : "As the scenario says.";
  if (which !== "assign" && which !== "compare") return;
  const place = which === "assign" ? $("assignment") : $("comparison");
  if (found.kind !== "group") return show(place, h("p", { class: "soft" }, "A scenario is to be run: see Simulate and Recommend."));
  try {
    if (which === "assign") {
      const given = await post(`/v1/assign?strategy=${encodeURIComponent($("strategy").value)}`, found.group);
      if (mine === asked) showAssignment(place, found.group, given);
    } else {
      const given = await post("/v1/compare-assignments", found.group);
      if (mine === asked) showComparison(place, given, (name) => { choose(name); select("assign", true); });
    }
  } catch (error) {
    if (mine === asked) show(place, problem(error));
  }
}

const problem = (error) => h("p", { class: "problem", role: "alert" }, error.message);
const wholeDocument = (found) => (found.kind === "group" ? found.group : found.text);

async function run() {
  const found = read();
  if (!found) return;
  const query = new URLSearchParams({ seed: $("seed").value || "1" });
  if ($("run-strategy").value) query.set("strategy", $("run-strategy").value);
  busy(true, "waits for its turn");
  show($("simulation"));
  try {
    job = await post(`/v1/simulations?${query}`, wholeDocument(found));
    const last = await follow(job.links.events, (told) => progress(told));
    if (last.state === "done") new Timeline($("simulation"), await get(job.links.result));
    else show($("simulation"), h("p", { class: last.state === "failed" ? "problem" : "soft" }, last.problem ? last.problem.detail : `The simulation was ${last.state}.`));
  } catch (error) {
    show($("simulation"), problem(error));
  }
  busy(false);
}

function progress(told) {
  $("progress").value = told.progress.done;
  $("progress-text").textContent = told.state === "queued" ? "waits for its turn" : `${Math.round(told.progress.done * 100)} %`;
}

function busy(on, text = "") {
  $("running").hidden = !on;
  $("cancel").hidden = !on;
  $("run").disabled = on;
  $("progress").value = 0;
  $("progress-text").textContent = text;
}

async function recommend() {
  const found = read();
  if (!found) return;
  const query = new URLSearchParams({ seeds: $("seeds").value || "6" });
  if ($("now").value) query.set("from", $("now").value);
  const started = Date.now();
  const tick = setInterval(() => ($("asking").textContent = `simulating, ${Math.round((Date.now() - started) / 1000)} s`), 500);
  $("ask").disabled = true;
  try {
    showAdvice($("advice"), await post(`/v1/recommend?${query}`, wholeDocument(found)));
  } catch (error) {
    show($("advice"), problem(error));
  }
  clearInterval(tick);
  $("asking").textContent = "";
  $("ask").disabled = false;
}

function choose(name) {
  const full = infos.find((one) => one.name === name || one.short === name);
  if (full) $("strategy").value = full.name;
  describe();
}

function describe() {
  $("strategy-what").textContent = infos.find((one) => one.name === $("strategy").value)?.what ?? "";
}

async function loadStrategies() {
  infos = (await get("/v1/strategies")).strategies;
  const options = () => infos.map((one) => h("option", { value: one.name }, one.name));
  show($("strategy"), options());
  show($("run-strategy"), h("option", { value: "" }, "the document's own"), options());
  show($("now"), h("option", { value: "" }, "as the document says"), options());
  $("strategy").value = "classic/range";
  $("run-strategy").value = "classic/range";
  describe();
}

// Hands and keys

function takeFile(file) {
  file?.text().then(setDocument);
}

function listen() {
  document.querySelectorAll("[name=how]").forEach((one) => one.addEventListener("change", switchHow));
  $("form").addEventListener("input", () => changed());
  $("document").addEventListener("input", () => changed());
  $("add-topic").addEventListener("click", () => { addTopic(); changed(0); });
  $("add-member").addEventListener("click", () => { addMember(); changed(0); });
  $("example").addEventListener("change", () => { if ($("example").value) setDocument(EXAMPLES[$("example").value]); });
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  $("strategy").addEventListener("change", () => { describe(); changed(0); });
  $("run").addEventListener("click", run);
  $("cancel").addEventListener("click", () => job && remove(job.links.self).catch(() => {}));
  $("ask").addEventListener("click", recommend);
  $("token-form").addEventListener("submit", (event) => { event.preventDefault(); useToken($("token").value); start(); });
  TABS.forEach((name, i) => {
    $(`tab-${name}`).addEventListener("click", () => select(name));
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: TABS.length - 1 }[event.key];
      if (to !== undefined) select(TABS[(to + TABS.length) % TABS.length], true);
    });
  });
  addEventListener("dragover", (event) => { event.preventDefault(); $("drop").hidden = false; });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").hidden = true; });
  addEventListener("drop", (event) => { event.preventDefault(); $("drop").hidden = true; takeFile(event.dataTransfer.files[0]); });
}

async function start() {
  try {
    await loadStrategies();
    $("document-problem").textContent = "";
    changed(0);
  } catch (error) {
    $("document-problem").textContent = error instanceof Problem ? error.message : "the service does not answer";
  }
}

onTokenNeeded(() => ($("token-form").hidden = false));
listen();
fillForm(EXAMPLES.fourth);
start();
