// The layout of a graph, beside the page: that of hundreds of steps takes seconds.

import { Graph, layout } from "../vendor/dagre-3.1.3.esm.js";

onmessage = ({ data: { number, nodes, edges } }) => {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) graph.setNode(id, { width, height });
  // From the last to the first: then steps beside each other stand in the order of the plan.
  for (const [from, to] of [...edges].reverse()) graph.setEdge(from, to);
  layout(graph);
  postMessage({
    number,
    width: graph.graph().width,
    height: graph.graph().height,
    nodes: nodes.map(({ id }) => {
      const { x, y } = graph.node(id);
      return { id, x, y };
    }),
    edges: edges.map(([from, to]) => graph.edge(from, to).points),
  });
};
