// JSON whose numbers stay as they are written: 1.0, and those with more digits than a number here has.

const asWritten = (name, value, context) =>
  typeof value === "number" && context && JSON.rawJSON && String(value) !== context.source ? JSON.rawJSON(context.source) : value;

export const parse = (text) => JSON.parse(text, asWritten);

export const isNumber = (value) => typeof value === "number" || Boolean(JSON.isRawJSON?.(value));

// What a field for numbers has may be no JSON: ".5".
export function numberIn(text) {
  try {
    return parse(text);
  } catch {
    return Number(text);
  }
}
