// What figures and letters mean: the marks beside them, and the texts that stand hidden in the page for all to be read to.

import { element } from "./tip.js";

const LETTERS = { τ: "sd-what-length", α: "sd-what-alpha" }; // by which text each is defined

/** What a mark tells of, for a tooltip. */
export function meaning(mark) {
  return [element("p", document.getElementById(mark.getAttribute("aria-describedby")).textContent)];
}

/** A sentence as nodes, a mark behind each letter that is defined. */
export function marked(sentence) {
  return sentence.split(/([τα])/).flatMap((part) => (LETTERS[part] ? [part, mark(part)] : [part]));
}

function mark(letter) {
  const node = element("button", "i", "sd-what");
  node.type = "button";
  node.setAttribute("aria-label", `What ${letter} is`);
  node.setAttribute("aria-describedby", LETTERS[letter]);
  return node;
}
