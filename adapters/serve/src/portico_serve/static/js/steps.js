// A plan as a list of steps, with what the check found beside each; literal arguments can be changed in place.

import { element, setText } from "./dom.js";
import { isLiteral, wordsOfCondition, wordsOfExpression } from "./expressions.js";
import { isNumber, numberIn, parse } from "./json.js";
import { isError, marksOf, wordsOf } from "./states.js";

export function findingRow(finding, { named = false, beside = false } = {}) {
  const kind = finding.verdict || finding.severity;
  return element(
    "li",
    { class: "finding", "data-severity": isError(finding) ? "error" : kind, "data-of": beside ? finding.step : null },
    element("span", { class: "kind" }, kind),
    " ",
    named && finding.step ? element("code", {}, finding.step) : null,
    named && finding.step ? " " : null,
    finding.message,
    finding.hint ? element("span", { class: "muted" }, ` ${finding.hint}`) : null,
  );
}

function inputFor(value, label, change) {
  const attributes = { "aria-label": label, spellcheck: "false", autocomplete: "off" };
  if (typeof value === "boolean") {
    const options = ["true", "false"].map((each) => element("option", { selected: String(value) === each }, each));
    const box = element("select", attributes, ...options);
    box.addEventListener("change", () => change(box.value === "true"));
    return box;
  }
  if (isNumber(value)) {
    const box = element("input", { ...attributes, type: "number", step: "any", value: JSON.stringify(value) });
    box.addEventListener("input", () => box.value !== "" && change(numberIn(box.value)));
    return box;
  }
  if (typeof value === "string") {
    const long = value.length > 60 || value.includes("\n");
    const box = element(long ? "textarea" : "input", long ? { ...attributes, rows: 3 } : { ...attributes, type: "text" });
    box.value = value;
    box.addEventListener("input", () => change(box.value));
    return box;
  }
  const text = JSON.stringify(value, null, 1);
  const box = element("textarea", { ...attributes, rows: Math.min(text.split("\n").length, 8) });
  box.value = text;
  box.addEventListener("input", () => {
    try {
      const made = parse(box.value);
      box.setCustomValidity("");
      change(made);
    } catch {
      box.setCustomValidity("This is not JSON.");
    }
    box.reportValidity();
  });
  return box;
}

export class StepsView {
  constructor(list, open, change) {
    this.list = list;
    this.open = open;
    this.change = change;
    this.rows = new Map();
  }

  draw(plan, graph, states) {
    const nodes = new Map((graph?.nodes ?? []).map((node) => [node.id, node]));
    this.rows = new Map();
    this.list.replaceChildren();
    for (const [at, step] of plan.steps.entries()) this.list.append(this.make(step, at, nodes.get(step.id)));
    for (const [id, step] of Object.entries(states)) this.set(id, step);
  }

  make(step, at, node = { findings: [] }) {
    const called = typeof step.function === "string" ? step.function : (node.function ?? "a part of the plan");
    const facts = Object.entries(step.arguments ?? {}).flatMap(([name, expression]) => [
      element("dt", {}, name),
      element("dd", {}, this.valueOf(step, at, name, expression)),
    ]);
    const { template } = step.function;
    if (template) facts.push(element("dt", {}, "template"), element("dd", {}, element("pre", {}, template)));
    if (step.each) facts.push(element("dt", {}, "each of"), element("dd", {}, element("code", {}, wordsOfExpression(step.each.items))));
    if (step.when) facts.push(element("dt", {}, "if"), element("dd", {}, element("code", {}, wordsOfCondition(step.when))));
    if (step.after?.length) facts.push(element("dt", {}, "after"), element("dd", {}, element("code", {}, step.after.join(", "))));
    const row = this.row(step.id, called, marksOf(node));
    row.append(
      ...(step.reason ? [element("p", {}, step.reason)] : []),
      ...(facts.length ? [element("dl", { class: "arguments" }, ...facts)] : []),
      element("ul", { class: "findings" }, ...node.findings.map((each) => findingRow(each))),
    );
    return row;
  }

  valueOf(step, at, name, expression) {
    if (!this.change || !isLiteral(expression)) return element("code", {}, wordsOfExpression(expression));
    return inputFor(expression.value, `${name} of ${step.id}`, (value) => this.change(at, name, value));
  }

  row(id, called, marks = []) {
    const button = element("button", { type: "button", class: "open" }, id);
    button.addEventListener("click", () => this.open(id, button));
    const state = element("span", { class: "state", hidden: true });
    const row = element(
      "li",
      { class: "step", "data-step": id },
      element(
        "div",
        { class: "row" },
        button,
        element("code", { class: "function" }, called),
        ...marks.map((mark) => element("span", { class: `mark ${mark}` }, mark)),
        element("span", { class: "grow" }),
        state,
      ),
    );
    this.rows.set(id, { row, state });
    return row;
  }

  // Findings alone: what is being typed stays.
  find(graph) {
    for (const node of graph?.nodes ?? []) {
      const shown = this.rows.get(node.id);
      shown?.row.querySelector(".findings")?.replaceChildren(...node.findings.map((each) => findingRow(each)));
    }
  }

  set(id, step) {
    if (!this.rows.has(id)) this.insert(id);
    const { row, state } = this.rows.get(id);
    row.dataset.state = state.dataset.state = step.state;
    state.hidden = step.state === "waiting";
    setText(state, wordsOf(step));
  }

  // A step inside another one is known when it begins.
  insert(id) {
    const outer = id.slice(0, Math.max(id.lastIndexOf("/"), 0));
    const row = this.row(id, "");
    let after = this.rows.get(outer)?.row ?? this.list.lastElementChild;
    while (after?.nextElementSibling?.dataset.step.startsWith(`${outer}/`)) after = after.nextElementSibling;
    if (after) after.after(row);
    else this.list.append(row);
  }
}
