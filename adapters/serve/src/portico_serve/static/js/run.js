// A run, while it happens: its event stream changes only what changes.

import { say } from "./banner.js";
import { counted, element, failure, find, framed, setText } from "./dom.js";
import { Editor } from "./editor.js";
import { GraphView } from "./graph.js";
import { openPanel, renewPanel } from "./panel.js";
import { refresh } from "./regions.js";
import { isError } from "./states.js";
import { findingRow, StepsView } from "./steps.js";
import { follow } from "./stream.js";
import { select } from "./tabs.js";

const VOLATILE = ["steps", "updated_at", "seconds", "cost", "services", "writing"];
const SAID = {
  held: "The run waits for you.",
  uncertain: "A step may or may not have happened. It needs your word.",
  done: "The answer is there.",
  failed: "The run failed.",
  infeasible: "This cannot be done.",
  interrupted: "The run was interrupted.",
  cancelled: "The run was cancelled.",
};

const main = find("main");
const { run } = main.dataset;
const base = `/runs/${encodeURIComponent(run)}`;
let now = null;
let before = null;
let state = main.dataset.state;
let writing = "";
let graph = null;
let steps = null;
let editor = null;
let shown = "";
const changed = new Map();

const addressOf = (id) => `${base}/steps/${id.split("/").map(encodeURIComponent).join("/")}`;
const show = (id, from) => openPanel(`Step ${id}`, addressOf(id), from);

function shapeOf(description) {
  return JSON.stringify(description, (name, value) => (VOLATILE.includes(name) && value === description[name] ? undefined : value));
}

const planOf = (description) => JSON.stringify([description?.plan, description?.graph]);

function drawPlan() {
  graph = steps = editor = null;
  drawn = "";
  shown = planOf(now);
  if (!now?.plan || !find("#steps")) return;
  const editable = "editable" in find("#plan").dataset;
  graph = new GraphView(find("#view-graph"), show);
  steps = new StepsView(find("#steps"), show, editable ? (at, name, value) => editor.set(at, name, value) : null);
  editor = new Editor(run, editable, checked);
  steps.draw(editor.plan, now.graph, now.steps);
  drawGraph(now.graph);
  list(now.graph.nodes.flatMap((node) => node.findings).concat(generalFindings()));
}

// A graph in a view that is hidden has no width: it is drawn when it is looked at.
let undrawn = null;
let drawn = "";
function drawGraph(made) {
  const form = JSON.stringify(made);
  if (form === drawn) return;
  undrawn = made;
  if (graph && undrawn && !find("#view-graph").hidden) {
    undrawn = null;
    drawn = form;
    graph.draw(made, now.steps);
  }
}

// A plan that is written anew is looked at as the one before; what is no longer edited, as it runs.
function keepView(old) {
  const { view } = old.dataset;
  if (view && view !== "json" && find(`#tab-${view}`)) select(find(`#tab-${view}`));
  if (!editor?.edited || editor.sent) return;
  find("#notice").replaceChildren(failure("The plan was decided elsewhere. Your changes to it did not run."));
}

function generalFindings() {
  const last = now.proposals.at(-1);
  const known = new Set(now.graph.nodes.map((node) => node.id));
  return (last && last.state !== "refused" ? last.findings : []).filter((each) => !known.has(each.step));
}

function list(findings) {
  find("#plan-findings").replaceChildren(...findings.map((each) => findingRow(each, { named: true, beside: steps.rows.has(each.step) })));
  const errors = findings.filter(isError).length;
  const others = findings.length - errors;
  find("#counts").replaceChildren(
    ...(errors ? [element("span", { class: "errors" }, counted(errors, "error"))] : []),
    ...(others ? [element("span", { class: "warnings" }, counted(others, "warning"))] : []),
  );
}

function checked(found) {
  list(found.findings);
  say(found.findings.length ? `${counted(found.findings.length, "finding")} in the plan.` : "The plan is in order.", { soon: true });
  if (found.text !== null) setText(find("#plan-text"), found.text);
  if (found.graph === null) return;
  if (found.redraw) steps.draw(found.plan, found.graph, {});
  else steps.find(found.graph);
  drawGraph(found.graph);
}

const showProgress = () => {
  const all = Object.values(now?.steps ?? {});
  const done = all.filter((each) => each.state === "done" || each.state === "skipped").length;
  const begun = all.some((each) => each.state !== "waiting");
  setText(find("#progress"), begun ? `${done} of ${counted(all.length, "step")} done` : all.length ? counted(all.length, "step") : "");
  const working = Object.entries(now?.steps ?? {}).filter(([, each]) => ["running", "retrying"].includes(each.state));
  const names = working.slice(0, 3).map(([id]) => id).join(", ");
  const doing = names ? `Working on ${names}${working.length > 3 ? ` and ${working.length - 3} more` : ""}` : all.length ? "" : "Thinking";
  setText(find("#doing"), doing);
  if (begun && now.state === "running") say(`${done} of ${all.length} steps done.`, { soon: true });
};

const apply = framed(() => {
  for (const [id, step] of changed) {
    graph?.set(id, step);
    steps?.set(id, step);
    renewPanel(addressOf(id));
  }
  changed.clear();
  showProgress();
});

const write = framed(() => setText(find("#writing"), writing));

function snapshot(description) {
  const shape = shapeOf(description);
  const sign = `${description.state}|${description.updated_at ?? ""}|${description.here}`;
  const isNew = before === null ? sign !== main.dataset.sign : shape !== before;
  const first = now === null;
  const known = now?.steps ?? {};
  now = description;
  before = shape;
  writing = description.writing;
  write();
  if (description.state !== state && SAID[description.state]) say(SAID[description.state]);
  state = description.state;
  if (isNew) refresh().then(settle);
  else if (first) drawPlan();
  for (const [id, step] of Object.entries(description.steps)) {
    if (step.at !== known[id]?.at || step.state !== known[id]?.state) changed.set(id, step);
  }
  apply();
}

function settle(fresh) {
  if (!fresh) before = "";
  // The page may have had this plan before its description came.
  if (!steps || shown !== planOf(now)) drawPlan();
  write();
  showProgress();
  if (["done", "infeasible"].includes(now.state)) end();
}

document.addEventListener("region", ({ detail: { id, old } }) => {
  if (id === "plan") keepView(old);
  if (id === "plan") drawPlan();
  if (id === "decision" && editor?.edited) editor.typed();
  if (id === "answer") write();
});

document.addEventListener("view", ({ detail: { view } }) => {
  if (view === "graph" && undrawn) drawGraph(undrawn);
});

document.addEventListener("submit", ({ target }) => {
  if (editor && find("#decision").contains(target)) editor.sent = true;
});

document.addEventListener("click", (event) => {
  if (event.target.id === "undo-edit") editor?.undo();
  if (event.target.id !== "edit") return;
  const box = find("#steps input, #steps textarea, #steps select");
  select(find(box ? "#tab-steps" : "#tab-json"));
  (box ?? find("#plan-json")).focus();
  find("#plan").scrollIntoView({ block: "nearest" });
});

const end = follow(`/api${base}/events`, {
  snapshot,
  steps(news) {
    if (!now) return;
    Object.assign(now, { ...news, steps: Object.assign(now.steps, news.steps) });
    for (const [id, step] of Object.entries(news.steps)) changed.set(id, step);
    apply();
  },
  text({ text }) {
    writing += text;
    write();
  },
  error: refresh,
});
