// Expressions of a plan, as people read them.

import { isNumber } from "./json.js";

export const isLiteral = (expression) =>
  expression !== null && typeof expression === "object" && Object.keys(expression).length === 1 && "value" in expression;

export function wordsOfExpression(expression) {
  if (typeof expression === "string") return JSON.stringify(expression);
  if (expression === null || typeof expression !== "object" || isNumber(expression)) return JSON.stringify(expression);
  if ("value" in expression) return JSON.stringify(expression.value);
  if ("from" in expression) return `${expression.from}${(expression.path ?? "$").replace(/^\$/, "")}`;
  if (Array.isArray(expression.text)) return expression.text.map(wordsOfExpression).join(" + ");
  if (Array.isArray(expression.list)) return `[${expression.list.map(wordsOfExpression).join(", ")}]`;
  if (expression.object) {
    const members = Object.entries(expression.object).map(([name, each]) => `${name}: ${wordsOfExpression(each)}`);
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(expression);
}

export function wordsOfCondition(condition) {
  const [[kind, value]] = Object.entries(condition);
  if (kind === "not") return `not (${wordsOfCondition(value)})`;
  if (kind === "equal") return value.map(wordsOfExpression).join(" equals ");
  return `${wordsOfExpression(value)} is ${kind}`;
}
