// A plan as a graph. Each step is a button; arrow keys go along the connections.

import { counted, element, shape } from "./dom.js";
import { marksOf, SIGNS, WORDS, worst } from "./states.js";

const ENDS = ["input", "result"];
const LEAST_SCALE = 0.7;
const measure = document.createElement("canvas").getContext("2d");
let worker = null;
let number = 0;
let placing = false;

function widthOf(text, font) {
  measure.font = font;
  return measure.measureText(text).width;
}

// In the middle: names that begin alike end differently.
const cut = (text, most) =>
  text.length > most ? `${text.slice(0, Math.ceil(most / 2))}…${text.slice(1 - Math.floor(most / 2))}` : text;

function sized(node) {
  const end = ENDS.includes(node.id) && !node.function;
  const title = cut(node.title, 26);
  const called = end ? "" : cut(node.function, 30);
  const marks = marksOf(node).join(" · ");
  const first = widthOf(title, "650 13px system-ui") + (marks ? widthOf(marks, "10.5px system-ui") + 12 : 0) + 46;
  const width = Math.max(first, widthOf(called, "12px monospace") + (node.each ? 72 : 24), end ? 70 : 110);
  return { ...node, end, title, called, marks, width: Math.ceil(width), height: end ? 30 : 48 };
}

function placed(nodes, edges) {
  if (placing) {
    worker.terminate();
    worker = null;
  }
  worker ??= new Worker("/static/js/layout.js", { type: "module" });
  placing = true;
  const asked = ++number;
  return new Promise((resolve) => {
    worker.onmessage = ({ data }) => {
      placing = false;
      if (data.number === asked) resolve(data);
    };
    worker.onerror = () => {
      worker = null;
      placing = false;
      resolve(byLevel(nodes, edges));
    };
    worker.postMessage({ number: asked, nodes: nodes.map(({ id, width, height }) => ({ id, width, height })), edges });
  });
}

// Rows by level, where the layout fails.
function byLevel(nodes, edges) {
  const rows = new Map();
  for (const node of nodes) rows.set(node.level, [...(rows.get(node.level) ?? []), node]);
  const at = new Map();
  let width = 0;
  let y = 8;
  for (const [, row] of [...rows].sort(([a], [b]) => a - b)) {
    let x = 8;
    for (const node of row) {
      at.set(node.id, { id: node.id, x: x + node.width / 2, y: y + 24, node });
      x += node.width + 22;
    }
    width = Math.max(width, x);
    y += 82;
  }
  const line = ([from, to]) => [
    { x: at.get(from).x, y: at.get(from).y + 24 },
    { x: at.get(to).x, y: at.get(to).y - 24 },
  ];
  return { width, height: y, nodes: [...at.values()], edges: edges.map(line) };
}

function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const next = rest[at + 1];
    if (!next) path += `L${point.x} ${point.y}`;
    else path += `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  return path;
}

export class GraphView {
  constructor(container, open) {
    this.container = container;
    this.open = open;
    this.nodes = new Map();
    this.states = {};
  }

  async draw(graph, states) {
    this.states = { ...states };
    const nodes = graph.nodes.map(sized);
    const known = new Set(nodes.map((node) => node.id));
    const edges = graph.edges.filter(([from, to]) => known.has(from) && known.has(to));
    const places = await placed(nodes, edges);
    const at = new Map(places.nodes.map((each) => [each.id, each]));
    this.nodes = new Map();
    this.around = { out: new Map(), in: new Map() };
    for (const [from, to] of edges) {
      this.around.out.set(from, [...(this.around.out.get(from) ?? []), to]);
      this.around.in.set(to, [...(this.around.in.get(to) ?? []), from]);
    }
    const width = Math.ceil(places.width);
    const room = this.container.clientWidth - 26;
    const scale = room > 0 ? Math.max(LEAST_SCALE, Math.min(1, room / width)) : 1;
    const svg = shape(
      "svg",
      {
        class: "graph",
        id: "graph",
        role: "group",
        "aria-label": `The plan as a graph of ${counted(nodes.filter((each) => !each.end).length, "step")}. Arrow keys go along the connections, Enter shows a step.`,
        viewBox: `0 0 ${width} ${Math.ceil(places.height)}`,
        width: Math.ceil(width * scale),
        height: Math.ceil(places.height * scale),
      },
      shape(
        "marker",
        { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        shape("path", { class: "arrow", d: "M0 .5 8 4 0 7.5Z" }),
      ),
      ...places.edges.map((points) => shape("path", { class: "edge", d: curve(points), "marker-end": "url(#tip)" })),
      ...nodes.map((node) => this.make(node, at.get(node.id))),
    );
    svg.addEventListener("keydown", (event) => this.move(event));
    svg.addEventListener("click", (event) => this.click(event.target.closest(".node")));
    const first = [...this.nodes.values()].find((each) => !each.node.end) ?? [...this.nodes.values()][0];
    first?.group.setAttribute("tabindex", "0");
    this.container.replaceChildren(nodes.length ? svg : element("p", { class: "muted small" }, "The plan has no steps."));
    if (first) this.container.scrollLeft = first.x * scale - this.container.clientWidth / 2;
  }

  make(node, { x, y }) {
    const sign = shape("text", { class: "sign", x: node.width - 10, y: 20, "aria-hidden": "true" });
    const many = shape("text", { class: "sign", x: node.width - 10, y: 37, "aria-hidden": "true" });
    const group = shape(
      "g",
      {
        class: "node",
        role: node.end ? "img" : "button",
        tabindex: "-1",
        transform: `translate(${x - node.width / 2} ${y - node.height / 2})`,
        "data-step": node.id,
        "data-end": node.end,
        "data-findings": worst(node.findings),
      },
      node.end || node.title + node.called === node.id + node.function ? null : shape("title", {}, `${node.id} ${node.function}`),
      shape("rect", { width: node.width, height: node.height, rx: 7 }),
      shape("text", { class: "id", x: node.end ? node.width / 2 : 12, y: 20, "text-anchor": node.end ? "middle" : null }, node.title),
      " ",
      node.end ? null : shape("text", { class: "function", x: 12, y: 37 }, node.called),
      " ",
      node.marks ? shape("text", { class: "mark", x: node.width - 26, y: 19.5 }, node.marks) : null,
      sign,
      " ",
      many,
    );
    this.nodes.set(node.id, { node, group, sign, many, x, y });
    this.set(node.id, this.states[node.id]);
    return group;
  }

  // Also while the graph is being laid out: then it is drawn with this.
  set(id, step) {
    this.states[id] = step;
    const shown = this.nodes.get(id);
    if (!shown) return;
    const { node, group, sign, many } = shown;
    const count = node.findings?.length ?? 0;
    sign.textContent = SIGNS[step?.state] ?? "";
    many.textContent = step?.items !== undefined && step.state === "running" ? `${step.done}/${step.items}` : "";
    if (step) group.setAttribute("data-state", step.state);
    // The name has what the node shows, in its order.
    const name = [node.title, node.called, node.marks, many.textContent].filter((each) => each).join(" ");
    const words = [name, WORDS[step?.state], count ? counted(count, "finding") : ""];
    group.setAttribute("aria-label", words.filter((each) => each).join(", "));
  }

  click(group) {
    const shown = group && this.nodes.get(group.dataset.step);
    if (!shown) return;
    this.focus(shown);
    if (!shown.node.end) this.open(shown.node.id, group);
  }

  focus({ group }) {
    for (const each of this.nodes.values()) each.group.setAttribute("tabindex", "-1");
    group.setAttribute("tabindex", "0");
    group.focus();
  }

  move(event) {
    const here = this.nodes.get(event.target.closest(".node")?.dataset.step);
    if (!here) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.click(here.group);
      return;
    }
    const to = this.beside(here, event.key);
    if (to === undefined) return;
    event.preventDefault();
    if (to) this.focus(to);
  }

  // undefined for a key that is not ours; null where there is nothing.
  beside(here, key) {
    const all = [...this.nodes.values()];
    const nearest = (ids) =>
      (ids ?? []).map((id) => this.nodes.get(id)).sort((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x))[0];
    const row = all.filter((each) => Math.abs(each.y - here.y) < 2).sort((a, b) => a.x - b.x);
    switch (key) {
      case "ArrowDown":
        return nearest(this.around.out.get(here.node.id)) ?? null;
      case "ArrowUp":
        return nearest(this.around.in.get(here.node.id)) ?? null;
      case "ArrowRight":
        return row[row.indexOf(here) + 1] ?? null;
      case "ArrowLeft":
        return row[row.indexOf(here) - 1] ?? null;
      case "Home":
        return all[0];
      case "End":
        return all.at(-1);
      default:
        return undefined;
    }
  }
}
