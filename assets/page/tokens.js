// The tokens as they are judged: a list of small pieces of text, each with its kind, its figures and a tooltip.

import { Tip } from "./tip.js";

const KINDS = {
  a: ["accepted", "a draft that was kept"],
  r: ["rejected", "a draft that was refused"],
  c: ["recovered", "sampled by the target in place of the refused draft"],
  b: ["bonus", "sampled by the target after all drafts were kept"],
  p: ["plain", "sampled by the target, nothing was drafted"],
  d: ["discarded", "a draft that was never judged"],
};
const DRAFTS = new Set("ard");
const REFUSED = new Set(["rejected", "discarded"]);
const NEAR_END = 40; // pixels: closer to its end than this, the text follows what is added

export class TokenView {
  constructor(root) {
    this.root = root;
    this.text = root.querySelector(".sd-text");
    this.list = root.querySelector(".sd-tokens");
    this.tip = new Tip(root.querySelector(".sd-tip"), this.list);
    this.fresh = document.createDocumentFragment();
    this.counts = {};
    this.off = new Set(); // kinds that are not marked
    this.list.addEventListener("keydown", (event) => this.walk(event));
    for (const button of root.querySelectorAll("[data-kind-of]")) button.addEventListener("click", () => this.toggle(button));
    this.text.addEventListener("scroll", () => this.look(), { passive: true });
    this.reset();
  }

  /** Whoever scrolls back to read is left there; at its end the text follows what is added. */
  look() {
    this.follow = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < NEAR_END;
  }

  reset() {
    this.follow = true;
    this.tip.hide();
    this.list.replaceChildren();
    this.fresh.replaceChildren();
    this.root.querySelector(".sd-prompt").textContent = "";
    for (const [name] of Object.values(KINDS)) this.counts[name] = 0;
    this.tell();
  }

  /** Mark a kind, or do not: then text of the run stands there plain, and a draft that is none of it is gone. */
  toggle(button) {
    const kind = button.dataset.kindOf;
    if (!this.off.delete(kind)) this.off.add(kind);
    this.root.classList.toggle(`sd-without-${kind}`, this.off.has(kind));
    button.setAttribute("aria-pressed", !this.off.has(kind));
    this.tip.hide();
    this.anchor();
  }

  gone({ dataset: { kind } }) {
    return REFUSED.has(kind) && this.off.has(kind);
  }

  /** The token that the tab key stops at: the one it was, or else the first that can be seen. */
  anchor() {
    const stop = this.list.querySelector(".sd-token[tabindex='0']");
    if (stop && !this.gone(stop)) return;
    if (stop) stop.tabIndex = -1;
    const first = this.all().find((node) => !this.gone(node));
    if (first) first.tabIndex = 0;
  }

  all() {
    return [...this.list.querySelectorAll(".sd-token")];
  }

  prompt(text) {
    this.root.querySelector(".sd-prompt").textContent = text;
  }

  /** Tokens of the answer so far. */
  length() {
    return Object.entries(this.counts).reduce((sum, [kind, count]) => sum + (REFUSED.has(kind) ? 0 : count), 0);
  }

  /**
   * A round's tokens. A line that its last token breaks is broken behind the discarded drafts, which come later.
   * `proposed`: how many drafts the round had, where `chips` leave out those that were never judged.
   */
  add(round, chips, proposed = chips.filter(([code]) => DRAFTS.has(code)).length) {
    const before = this.length();
    let breaks = "";
    let draft = 0;
    for (const [code, text, ...judgement] of chips) {
      if (code !== "d") {
        if (breaks) this.fresh.append(gap(breaks));
        breaks = code === "r" ? "" : text.match(/\n*$/)[0];
      }
      draft += DRAFTS.has(code);
      const place = DRAFTS.has(code) ? { position: before + draft, draft, proposed } : { position: this.length() + 1 };
      this.fresh.append(...this.piece({ round, ...place }, code, text, judgement));
    }
    if (breaks) this.fresh.append(gap(breaks));
  }

  /** Put what was added since into the page, in one go. */
  flush() {
    if (!this.fresh.childNodes.length) return;
    this.list.append(this.fresh);
    this.anchor();
    if (this.follow) this.text.scrollTop = this.text.scrollHeight;
    this.tell();
  }

  tell() {
    for (const [name, count] of Object.entries(this.counts)) {
      this.root.querySelector(`[data-count="${name}"]`).textContent = count || "";
    }
  }

  /** Leading spaces stay outside of the coloured piece, so that words stand apart as they do in print. */
  piece(place, code, text, [p, q, u, acceptance, lists]) {
    const [kind, meaning] = KINDS[code];
    this.counts[kind] += 1;
    const word = text.trim() ? text.replace(/^ +/, "") : text;
    const node = document.createElement("span");
    node.className = `sd-token sd-${kind}`;
    node.dataset.kind = kind;
    node.tabIndex = -1;
    node.setAttribute("role", "listitem");
    node.setAttribute("aria-label", `${JSON.stringify(text)}, ${kind}`);
    node.append(...lines(word, REFUSED.has(kind)));
    node.facts = { kind, meaning, text, ...place, p, q, u, acceptance, lists };
    const space = text.slice(0, text.length - word.length);
    return space ? [gap(space, kind), node] : [node];
  }

  /** Arrow keys move from token to token; only one of them is a tab stop. */
  walk(event) {
    const all = this.all().filter((node) => !this.gone(node));
    const here = all.indexOf(event.target);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (here < 0 || to === undefined || !all[to]) return;
    event.preventDefault();
    all[here].tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  }
}

/** White space between tokens; that before a refused one goes with it when its kind is hidden. */
function gap(space, kind = "") {
  const node = document.createElement("span");
  node.className = REFUSED.has(kind) ? `sd-gap sd-gap-${kind}` : "sd-gap";
  node.textContent = space;
  return node;
}

/** The text of a token with a visible mark for each line break; those at its end are made outside of it. */
function lines(text, refused) {
  const parts = text.split("\n");
  const last = parts.findLastIndex(Boolean);
  return parts.flatMap((part, index) => {
    if (!index) return [part];
    const mark = document.createElement("span");
    mark.className = "sd-break";
    mark.setAttribute("aria-hidden", "true");
    return refused || index > last ? [mark, part] : [mark, "\n" + part];
  });
}
