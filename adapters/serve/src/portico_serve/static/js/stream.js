// An event stream that comes back by itself. Each connection begins with a snapshot, so nothing is remembered.

import { SESSION, TRYING, warn } from "./banner.js";

const SHORTEST = 500;
const LONGEST = 5000;
// A browser has few connections to one server: a page that is not looked at gives its own back.
const UNSEEN = 30000;

export function follow(address, handlers) {
  let source = null;
  let wait = SHORTEST;
  let timer = 0;
  let ended = false;

  function open() {
    if (ended || source) return;
    source = new EventSource(address);
    source.onopen = () => {
      wait = SHORTEST;
      warn("");
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        if (event.data !== undefined) handle(JSON.parse(event.data));
      });
    }
    source.onerror = (event) => {
      // The server has an event of the same name.
      if (event.data === undefined) lost();
    };
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  function lost() {
    close();
    timer = setTimeout(probe, wait);
    wait = Math.min(wait * 2, LONGEST);
  }

  // The stream does not say why it failed; a request does.
  async function probe() {
    if (ended) return;
    try {
      const response = await fetch(address.replace(/\/events$/, ""), { cache: "no-store" });
      if (source) return;
      if (response.ok) return open();
      if (response.status === 404) return warn("The server does not know this any more.");
      warn(response.status === 401 ? SESSION : TRYING);
    } catch {
      if (source) return;
      warn(TRYING);
    }
    timer = setTimeout(probe, wait);
    wait = Math.min(wait * 2, LONGEST);
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, UNSEEN);
    else open();
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
  return () => {
    ended = true;
    close();
  };
}
