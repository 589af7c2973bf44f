// Where a draft was refused: p and q side by side, what p has above q, and the token that the target drew from that.
//
// A chip's lists, see specdec/ui/view.py, are [place, text, probability, text, probability, …], likeliest first.

import { element, known, shown } from "./tip.js";

const MARKS = { " ": "␣", "\n": "↵", "\t": "⇥" };
const NOTHING = 0.001; // a bound below this is shown as 0
const HEADS = { p: "target p", q: "draft q", r: "what is left", s: "target’s softmax" };
const COLUMNS = { rejection: ["p", "q", "r"], match: ["p", "q"], greedy: ["s"] };
const CAPTIONS = {
  rejection: "The target drew from what p has above q, the yellow end of its bar, made to sum to 1.",
  match: "Exact match knows no remainder: the target draws from p itself, and what it drew stays.",
  greedy: "Greedy draws nothing: the target takes its likeliest token.",
};

/** A table about the refused draft of a round; null where none was refused or its lists were not recorded. */
export function leftOver(chips, way) {
  const refused = chips.find(([kind]) => kind === "r");
  const own = chips.find(([kind]) => kind === "c");
  if (!refused?.[6] || !own) return null;
  const lists = read({ ...own[6], ...refused[6] });
  settle(lists, refused);
  const columns = COLUMNS[way].filter((name) => lists[name]);
  const marks = { [key(own[1])]: ["recovered", way === "greedy" ? "taken" : "drawn"], [key(refused[1])]: ["rejected", "refused"] };
  const tokens = new Set([refused[1], ...(lists[columns.at(way === "rejection" ? -1 : 0)]?.texts ?? []), own[1]]);
  const body = element("tbody");
  body.append(...[...tokens].map((text) => row(text, lists, columns, marks[key(text)])));
  const table = element("table", "", "st-left-table");
  table.append(element("caption", CAPTIONS[way]), head(columns), body);
  return table;
}

/** {name: {texts, values: probability by token, most: what a token that is not listed can have}}. */
function read(flat) {
  const lists = {};
  for (const [name, [, ...entries]] of Object.entries(flat)) {
    const texts = entries.filter((_, index) => index % 2 === 0);
    const chances = entries.filter((_, index) => index % 2);
    const rest = chances.reduce((left, chance) => left - chance, 1);
    const values = {};
    texts.forEach((text, index) => (values[key(text)] ??= chances[index]));
    lists[name] = { texts, values, most: Math.max(0, Math.min(rest, chances.at(-1) ?? 1)) };
  }
  return lists;
}

/** What is known of the refused draft itself, whether it is among the likeliest or not: nothing of it is left. */
function settle({ p: target, q: draft, r: left }, [, text, p, q]) {
  if (target) target.values[key(text)] ??= p;
  if (draft) draft.values[key(text)] ??= q;
  if (left) left.values[key(text)] = 0;
}

/** A token as the name of a property; none is "__proto__". */
function key(text) {
  return `:${text}`;
}

function head(columns) {
  const row = element("tr");
  for (const name of ["token", ...columns.map((column) => HEADS[column])]) {
    const cell = element("th", name);
    cell.scope = "col";
    row.append(cell);
  }
  const top = element("thead");
  top.append(row);
  return top;
}

function row(text, lists, columns, [kind, said] = ["plain", ""]) {
  const node = element("tr");
  const name = element("th");
  name.scope = "row";
  name.append(element("span", visible(text), `sd-token sd-${kind}`));
  if (said) name.append(element("small", said));
  node.append(name, ...columns.map((column) => cell(column, key(text), lists)));
  return node;
}

/** A probability as a bar and a number; of p, what lies above q is set off where that is what counts. */
function cell(column, token, lists) {
  const node = element("td");
  const value = lists[column].values[token];
  const bar = element("span", "", `st-bar-of st-bar-${column}`);
  bar.setAttribute("aria-hidden", "true");
  bar.append(part(value ?? 0, ""));
  if (column === "p" && lists.r) bar.append(part(Math.min(value ?? 0, lists.q?.values[token] ?? 0), "st-below"));
  node.append(bar, element("span", known(value) ? shown(value) : atMost(lists[column].most), "st-number"));
  return node;
}

function part(share, kind) {
  const node = element("i", "", kind);
  node.style.width = `${100 * Math.min(1, share)}%`;
  return node;
}

function atMost(bound) {
  return bound < NOTHING ? "0" : `< ${shown(bound)}`;
}

function visible(text) {
  return text.replace(/[ \n\t]/g, (space) => MARKS[space]) || "∅";
}
