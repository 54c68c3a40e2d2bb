// Reads one case a line on stdin and writes handlebars.js's answer as a line on stdout.
// The first line written is {"handlebars": VERSION}. The helpers are those of README.md.

import { createInterface } from "node:readline";
import Handlebars from "handlebars";

const helpers = {
  upper(...given) {
    return typeof given[0] === "string" && given.length > 1 ? given[0].toUpperCase() : first(given);
  },
  join(...given) {
    const [list, separator] = given;
    return Array.isArray(list) && typeof separator === "string" ? list.join(separator) : "";
  },
  list(...given) {
    return given.slice(0, -1);
  },
  options(...given) {
    const { hash } = given.pop();
    const named = Object.keys(hash).sort().map((name) => `${name}=${shown(hash[name])}`);
    return [...given.map(shown), ...named].join(" ");
  },
  bold(...given) {
    const options = given.pop();
    return `<b>${options.fn ? options.fn(this) : given[0] ?? ""}</b>`;
  },
  wrap(value, options) {
    return options.fn(this, { blockParams: [value] });
  },
  raw(...given) {
    return given.pop().fn(this);
  },
  safe(...given) {
    return new Handlebars.SafeString(given.length > 1 ? String(given[0] ?? "") : "");
  },
};

function first(given) {
  return given.length > 1 ? given[0] : undefined;
}

function shown(value) {
  if (value === undefined || value === null) return String(value ?? null);
  if (Array.isArray(value)) return `[${value.map(shown).join(",")}]`;
  if (typeof value === "object") return "{…}";
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function answer({ template, data, partials = {} }) {
  const handlebars = Handlebars.create();
  handlebars.log = () => undefined;
  handlebars.logger.log = () => undefined;
  handlebars.registerHelper(helpers);
  handlebars.registerPartial(partials);
  try {
    return { expected: handlebars.compile(template)(data) };
  } catch {
    return { error: true };
  }
}

process.stdout.write(`${JSON.stringify({ handlebars: Handlebars.VERSION })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(answer(JSON.parse(line)))}\n`);
}
