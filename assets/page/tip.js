// What is known about a token, or meant by a figure, beside it while it is pointed at, tapped or focused. All text is set
// through textContent.

const HEADS = {
  p: "target p",
  q: "draft q",
  r: "what was left: max(0, p − q)",
  s: "target’s softmax",
};
const MARKS = { " ": "␣", "\n": "↵", "\t": "⇥" };

/** `list` holds what can be pointed at: nodes that match `selector`, of each of which `describe` makes nodes. */
export class Tip {
  constructor(node, list, selector = ".sd-tokens .sd-token", describe = ({ facts }) => described(facts)) {
    this.node = node;
    this.list = list;
    this.selector = selector;
    this.describe = describe;
    for (const name of ["focusin", "click"]) list.addEventListener(name, (event) => this.about(event.target));
    list.addEventListener("mousemove", (event) => this.point(event));
    list.addEventListener("mouseleave", () => this.focused() || this.hide());
    list.addEventListener("focusout", () => this.hide());
    document.addEventListener("pointerdown", (event) => list.contains(event.target) || this.hide());
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.hide());
    document.addEventListener("scroll", () => this.follow(), true);
  }

  /** A mouse that rests says nothing, whatever is moved under it. */
  point({ clientX, clientY, target }) {
    const place = `${clientX} ${clientY}`;
    if (place !== this.pointer) this.about(target);
    this.pointer = place;
  }

  focused() {
    return this.target === document.activeElement;
  }

  about(node) {
    const target = node.closest?.(this.selector);
    if (!target) return this.hide();
    if (target === this.target && !this.node.hidden) return undefined;
    this.node.replaceChildren(...this.describe(target));
    this.node.hidden = false;
    this.target = target;
    if (!target.hasAttribute("aria-describedby")) target.setAttribute("aria-describedby", this.node.id);
    this.place(target.getClientRects()[0] || target.getBoundingClientRect());
    return undefined;
  }

  /** What was scrolled to by the keyboard keeps its tooltip as long as it is in sight; anything else loses it. */
  follow() {
    if (this.node.hidden) return;
    const box = this.target.getBoundingClientRect();
    const frame = this.list.parentElement.getBoundingClientRect();
    if (this.focused() && box.top >= frame.top && box.bottom <= frame.bottom) this.place(box);
    else this.hide();
  }

  /** Above the target, or below where there is no room; never beyond the window. */
  place(box) {
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const { clientWidth, clientHeight } = document.documentElement;
    const above = box.top - height - 8;
    const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), clientWidth - width - 8);
    const top = above < 8 ? Math.min(box.bottom + 8, clientHeight - height - 8) : above;
    this.node.style.left = `${left}px`;
    this.node.style.top = `${Math.max(8, top)}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}

function described({ kind, meaning, text, round, p, q, u, acceptance, lists, ...place }) {
  const facts = [["round", round + 1], ["p target", p], ["q draft", q], ["accepted with", acceptance], ["u drawn", u]];
  const table = element("dl");
  for (const [name, value] of facts) {
    if (known(value)) table.append(element("dt", name), element("dd", shown(value)));
  }
  const parts = [element("strong", JSON.stringify(text)), element("p", `${kind}: ${meaning}`), element("p", where(kind, place)), table];
  if (lists) parts.push(columns(lists, text, { p, q }));
  return parts;
}

/** Which token of the answer it is, or would have been; of a draft also which one of its round. */
function where(kind, { position, draft, proposed }) {
  if (!draft) return `position ${position}`;
  return `${kind === "accepted" ? "" : "meant for "}position ${position}, draft ${draft} of ${proposed}`;
}

/** A column of bars for each list; a token that is not among the likeliest is added below them, if its figure is known. */
function columns(lists, text, own) {
  const all = element("div", "", "sd-tops");
  for (const [name, [place, ...flat]] of Object.entries(lists)) {
    const rows = element("ol");
    for (let i = 0; i < flat.length; i += 2) rows.append(bar(flat[i], flat[i + 1], i === 2 * place ? "sd-own" : ""));
    if (place < 0 && known(own[name])) rows.append(bar(text, own[name], "sd-own sd-further"));
    const column = element("div", "", "sd-top");
    column.append(element("p", HEADS[name]), rows);
    all.append(column);
  }
  if (lists.s) all.append(element("p", "Greedy: the target takes its first, for certain."));
  return all;
}

function bar(text, probability, kind) {
  const row = element("li", "", kind);
  const length = element("i");
  length.style.width = `${100 * Math.min(1, Math.max(0, probability))}%`;
  row.append(length, element("span", visible(text)), element("b", shown(probability)));
  return row;
}

/** White space as marks, because here it stands alone. */
function visible(text) {
  return text.replace(/[ \n\t]/g, (space) => MARKS[space]) || "∅";
}

export function known(value) {
  return value !== undefined && value !== null;
}

export function shown(value) {
  if (Number.isInteger(value)) return String(value);
  return value >= 0.001 ? value.toFixed(3) : value.toExponential(1);
}

export function element(tag, text = "", kind = "") {
  const node = document.createElement(tag);
  node.textContent = text;
  node.className = kind;
  return node;
}
