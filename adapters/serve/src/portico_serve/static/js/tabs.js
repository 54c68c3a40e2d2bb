// Views of one thing behind tabs.

import { find, findAll } from "./dom.js";

export function select(tab, { focus = false } = {}) {
  const list = tab.closest("[role=tablist]");
  for (const each of findAll("[role=tab]", list)) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", String(chosen));
    each.tabIndex = chosen ? 0 : -1;
    find(`#${each.getAttribute("aria-controls")}`).hidden = !chosen;
  }
  list.parentElement.dataset.view = tab.id.replace("tab-", "");
  if (focus) tab.focus();
  tab.dispatchEvent(new CustomEvent("view", { bubbles: true, detail: { view: list.parentElement.dataset.view } }));
}

document.addEventListener("click", (event) => {
  const tab = event.target.closest?.("[role=tab]");
  if (tab) select(tab);
});

document.addEventListener("keydown", (event) => {
  const tab = event.target.closest?.("[role=tab]");
  if (!tab) return;
  const tabs = findAll("[role=tab]", tab.parentElement);
  const at = tabs.indexOf(tab);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  select(tabs[(to + tabs.length) % tabs.length], { focus: true });
});
