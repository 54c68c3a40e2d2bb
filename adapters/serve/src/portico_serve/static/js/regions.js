// Bring the page up to date: the server writes it anew, and only the regions that differ are put in place.

import { find, findAll } from "./dom.js";
import { SESSION, warn } from "./banner.js";

let working = null;
let again = false;

// Gives whether the page is up to date: without an answer of the server it is not.
export function refresh() {
  again = true;
  working ??= work().finally(() => {
    working = null;
  });
  return working;
}

async function work() {
  while (again) {
    again = false;
    let response;
    try {
      response = await fetch(location.pathname + location.search, { cache: "no-store" });
    } catch {
      return false;
    }
    if (response.status === 401) warn(SESSION);
    if (!response.ok) return false;
    place(new DOMParser().parseFromString(await response.text(), "text/html"));
  }
  return true;
}

function place(page) {
  document.title = page.title;
  const newMain = find("main", page);
  const main = find("main");
  for (const { name, value } of newMain.attributes) main.setAttribute(name, value);
  for (const region of findAll("[data-region]", newMain)) {
    const old = document.getElementById(region.id);
    if (!old || old.dataset.key === region.dataset.key) continue;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    for (const each of findAll("details[id][open]", old)) {
      find(`#${CSS.escape(each.id)}`, region)?.setAttribute("open", "");
    }
    const made = document.importNode(region, true);
    old.replaceWith(made);
    window.htmx?.process(made);
    if (focused) (document.getElementById(focused.id) ?? main).focus({ preventScroll: true });
    made.dispatchEvent(new CustomEvent("region", { bubbles: true, detail: { id: made.id, old } }));
  }
}
