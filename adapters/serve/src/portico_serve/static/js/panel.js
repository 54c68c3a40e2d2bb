// What is looked at beside the page: a passage, a step.

import { AWAY, SESSION, warn } from "./banner.js";
import { find, setText } from "./dom.js";

let opener = null;
let pending = null;

export function openPanel(title, address, from = document.activeElement) {
  const panel = find("#panel");
  setText(find("#panel-title"), title);
  find("#panel-body").replaceChildren();
  opener?.removeAttribute("aria-expanded");
  opener = from;
  opener?.setAttribute("aria-expanded", "true");
  panel.hidden = false;
  panel.dataset.address = address;
  panel.scrollTop = 0;
  reload();
  panel.focus({ preventScroll: true });
}

// Written again with what is known now, if this is what it shows.
export function renewPanel(address) {
  const panel = find("#panel");
  if (!panel.hidden && panel.dataset.address === address) reload();
}

async function reload() {
  const panel = find("#panel");
  const { address } = panel.dataset;
  pending?.abort();
  pending = new AbortController();
  const { signal } = pending;
  let text;
  try {
    const response = await fetch(address, { headers: { "HX-Request": "true" }, signal });
    warn(response.status === 401 ? SESSION : "");
    text = await response.text();
  } catch (error) {
    if (error.name !== "AbortError") warn(AWAY);
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  find("#panel-body").replaceChildren(...(find("main", page) ?? page.body).childNodes);
}

export function closePanel() {
  const panel = find("#panel");
  if (panel.hidden) return;
  panel.hidden = true;
  opener?.removeAttribute("aria-expanded");
  if (opener?.isConnected) opener.focus({ preventScroll: true });
  else find("main").focus({ preventScroll: true });
  opener = null;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closePanel();
});
find("#panel-close").addEventListener("click", closePanel);
