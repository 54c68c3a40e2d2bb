// What every page does: keys that send, passages beside the page, and words where a form or the server fails.

import { AWAY, SESSION, say, warn } from "./banner.js";
import { counted, failure, find, findAll } from "./dom.js";
import { openPanel } from "./panel.js";
import "./tabs.js";

const mac = /Mac|iPhone|iPad/.test(navigator.platform);
if (mac) for (const key of findAll("kbd")) if (key.textContent === "Ctrl") key.textContent = "⌘";

document.addEventListener("keydown", (event) => {
  const box = event.target.closest?.("[data-send]");
  if (!box || event.key !== "Enter" || event.isComposing) return;
  const enter = box.dataset.send === "enter" && !event.shiftKey && !event.altKey;
  if (event.ctrlKey || event.metaKey || enter) {
    event.preventDefault();
    box.form.requestSubmit();
  }
});

find("#all-sources")?.addEventListener("click", () => {
  const boxes = findAll("#sources [type=checkbox]");
  const all = boxes.every((each) => each.checked);
  for (const each of boxes) each.checked = !all;
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.cite");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openPanel(`Passage ${link.dataset.cite}`, link.getAttribute("href"), link);
});

// The server refuses with a page where it does not know that a part was asked for.
document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const status = ctx.response.status;
  warn(status === 401 ? SESSION : "");
  if (status === 401) {
    event.preventDefault();
  } else if (status >= 400 && /^\s*<!doctype/i.test(ctx.text)) {
    const page = new DOMParser().parseFromString(ctx.text, "text/html");
    const words = find("main p", page)?.textContent ?? `The server says ${status}.`;
    const target = ctx.target instanceof Element ? ctx.target : find("#notice");
    target?.replaceChildren(failure(words));
    event.preventDefault();
  }
});

document.addEventListener("htmx:error", (event) => {
  if (event.detail.error instanceof TypeError) warn(AWAY);
});

document.addEventListener("htmx:after:swap", () => {
  if (find("#run-list")) say(`${counted(findAll("tr[data-run]").length, "run")} listed.`, { soon: true });
});
