// Reads drawings, a JSON string on each line; answers with what Mermaid's own parser makes of each.
import { createInterface } from "node:readline";
import { JSDOM } from "jsdom";

const window = new JSDOM("<!doctype html><body></body>").window;
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");
mermaid.initialize({ startOnLoad: false, maxTextSize: 10_000_000, maxEdges: 100_000 });
const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");
say({ mermaid: "parser" });

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const diagram = await mermaid.mermaidAPI.getDiagramFromText(JSON.parse(line));
    const db = diagram.db;
    const vertices = Object.fromEntries([...db.getVertices()].map(([id, v]) => [id, v.text]));
    const edges = db.getEdges().map((e) => [e.start, e.end, e.text, e.stroke]);
    const boxes = db.getSubGraphs().map((s) => [s.id, s.title, s.nodes]);
    say({ type: diagram.type, vertices, edges, boxes });
  } catch (error) {
    say({ error: String(error?.message ?? error) });
  }
}
