// The states of steps: a sign, and the words that the page has for it.

import { find } from "./dom.js";

export const SIGNS = {
  waiting: "",
  running: "◐",
  retrying: "↻",
  done: "✓",
  failed: "✕",
  skipped: "–",
  held: "‖",
  uncertain: "?",
};

export const WORDS = JSON.parse(find("main").dataset.words);

export function wordsOf(step) {
  const words = WORDS[step?.state] ?? "";
  if (step?.state === "retrying" && step.attempt) return `${words}, attempt ${step.attempt}`;
  return step?.items === undefined ? words : `${words}, ${step.done} of ${step.items}`;
}

export const marksOf = (node) =>
  [node.effects && "effects", node.each && "each", node.when && "if"].filter((each) => each);

export const isError = (finding) => finding.severity === "error" || finding.verdict === "refuse";

export function worst(findings) {
  if (!findings?.length) return null;
  return findings.some(isError) ? "error" : "warning";
}
