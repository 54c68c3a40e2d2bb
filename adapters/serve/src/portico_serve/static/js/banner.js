// What the page tells on its own: a line above it when the server is away, and words for a screen reader.

import { find, setText } from "./dom.js";

export const SESSION = "This browser has no session any more. Open the new address that the terminal prints.";
export const AWAY = "The server does not answer.";
export const TRYING = `${AWAY} Trying again…`;

export function warn(text) {
  const banner = find("#banner");
  setText(banner, text);
  banner.hidden = !text;
}

const SHORTEST = 4000;
let last = 0;
let timer = 0;

// Important words at once; others at most every few seconds, the newest of them.
export function say(text, { soon = false } = {}) {
  clearTimeout(timer);
  const wait = soon ? Math.max(last + SHORTEST - Date.now(), 0) : 0;
  timer = setTimeout(() => {
    last = Date.now();
    setText(find("#live"), text);
  }, wait);
}
