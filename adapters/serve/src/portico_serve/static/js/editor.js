// A plan that is being changed: as JSON or by its arguments, and checked while it is.

import { ask } from "./api.js";
import { delayed, find } from "./dom.js";
import { parse } from "./json.js";

const WAIT = 300;

export class Editor {
  // `checked` gets what the check says: {plan, findings, graph, text}.
  constructor(run, editable, checked) {
    this.run = run;
    this.checked = checked;
    this.box = find("#plan-json");
    // Before this, a change would go unseen, and the plan would run as it was.
    this.box.readOnly = !editable;
    this.lines = find("#line-numbers");
    // What the server wrote: the box may have changes already.
    this.original = this.box.defaultValue;
    this.plan = parse(this.original);
    this.look = delayed(() => this.check(), WAIT);
    // In place of those of an editor before this one.
    this.box.oninput = () => this.typed();
    this.box.onkeydown = (event) => this.indent(event);
    this.box.onscroll = () => {
      this.lines.scrollTop = this.box.scrollTop;
    };
    this.number();
    if (this.edited) this.typed();
  }

  get edited() {
    return this.box.value !== this.original;
  }

  number() {
    const count = this.box.value.split("\n").length;
    if (this.count === count) return;
    this.count = count;
    this.lines.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n");
  }

  // Tab indents; Escape and then Tab leaves.
  indent(event) {
    if (event.key === "Escape") this.leaving = true;
    if (event.key !== "Tab" || event.shiftKey || this.leaving || this.box.readOnly) {
      if (event.key !== "Escape") this.leaving = false;
      return;
    }
    event.preventDefault();
    this.box.setRangeText("  ", this.box.selectionStart, this.box.selectionEnd, "end");
    this.typed();
  }

  typed() {
    this.number();
    this.show();
    this.redraw = true;
    this.look();
  }

  // One argument was changed in its own field: the JSON follows.
  set(at, name, value) {
    const step = this.plan?.steps?.[at];
    if (!step) return;
    step.arguments[name] = { value };
    this.box.value = JSON.stringify(this.plan, null, 2);
    this.number();
    this.show();
    this.look();
  }

  undo() {
    this.box.value = this.original;
    this.typed();
    this.check();
  }

  // The decision has the changed plan; there is none any more where it was taken.
  show() {
    if (!find("#edited-plan")) return;
    const { edited } = this;
    find("#edited-plan").value = edited ? this.box.value : "";
    find("#edited-note").hidden = !edited;
    find("#approve").textContent = edited ? "Run the changed plan" : "Run this plan";
    // A plan that is not checked yet does not run.
    if (edited) find("#approve").disabled = true;
  }

  async check() {
    if (!this.box.isConnected) return;
    const text = this.box.value;
    this.pending?.abort();
    let plan;
    try {
      plan = parse(text);
    } catch (error) {
      this.plan = null;
      const finding = { severity: "error", message: `This is not JSON: ${error.message}.`, step: null };
      this.done({ plan: null, findings: [finding], graph: null, text: null });
      return;
    }
    this.plan = plan;
    this.pending = new AbortController();
    try {
      const response = await ask("/api/plans/check", {
        method: "POST",
        body: { plan, run: this.run },
        signal: this.pending.signal,
      });
      const found = await response.json();
      if (this.box.value === text) this.done({ plan, ...found });
    } catch (error) {
      if (error.name === "AbortError") return;
      this.done({ plan, findings: [{ severity: "error", message: error.message, step: null }], graph: null, text: null });
    }
  }

  done(found) {
    if (!this.box.isConnected || !find("#edited-plan")) return;
    find("#approve").disabled = this.edited && found.findings.some((each) => each.severity === "error");
    this.checked({ ...found, redraw: this.redraw });
    if (found.graph !== null) this.redraw = false;
  }
}
