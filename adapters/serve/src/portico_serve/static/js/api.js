// Requests to the server, with its reasons as errors.

import { AWAY, SESSION, warn } from "./banner.js";

export async function ask(path, { method = "GET", body, signal } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name !== "AbortError") warn(AWAY);
    throw error;
  }
  warn(response.status === 401 ? SESSION : "");
  if (response.ok) return response;
  const said = await response.json().catch(() => null);
  throw Object.assign(new Error(said?.error?.message ?? `The server says ${response.status}.`), {
    status: response.status,
    findings: said?.error?.findings ?? [],
  });
}

export const post = (path, body = {}) => ask(path, { method: "POST", body });
