// Elements made without markup: what comes from data is text, and nothing else.

const SVG = "http://www.w3.org/2000/svg";

export const find = (selector, within = document) => within.querySelector(selector);
export const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return node;
}

export const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const shape = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

export const failure = (words) => element("div", { class: "failure", role: "alert" }, element("p", {}, words));

export const setText = (node, text) => {
  if (node && node.textContent !== text) node.textContent = text;
};

export const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// Many changes in one frame become one.
export function framed(work) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      work();
    });
  };
}

export function delayed(work, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}
