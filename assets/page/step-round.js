// One round as a picture: what the draft proposed, the target's one pass, each judgement, and what the text gained.
//
// Chips are those of specdec/ui/view.py: [kind, text, p, q, u, acceptance]. Texts are set through textContent only.

import { leftOver } from "./step-left.js";
import { element, known, shown } from "./tip.js";

export const KINDS = { a: "accepted", r: "rejected", c: "recovered", b: "bonus", p: "plain", d: "discarded" };
const VERDICTS = { a: "✓ accepted", r: "× rejected", d: "– discarded, never judged" };
const MAX_BEFORE = 56; // characters of the text so far
const FIRST_COLUMN = 140; // pixels, as in step-round.css
const NARROWEST = 98; // pixels a position needs where positions stand side by side
const RULES = {
  rejection: "kept where u falls inside the bar",
  greedy: "kept if it is the target's best token",
  match: "kept if the target draws it too",
};

export class Picture {
  constructor(root) {
    this.node = root.querySelector(".st-picture");
    this.sentence = root.querySelector(".st-sentence");
    this.where = root.querySelector(".st-where");
    this.left = root.querySelector(".st-left");
    this.most = 1;
    new ResizeObserver(() => this.fit()).observe(root.querySelector(".st-stage"));
  }

  /** Begin with another run. */
  begin(run) {
    this.run = run;
    this.most = Math.max(...run.rounds.map(({ chips }) => drafts(chips).length)) + 1;
    this.fit();
  }

  /** Side by side where there is room for the longest round, else one below the other. */
  fit() {
    const side = this.node.clientWidth >= FIRST_COLUMN + NARROWEST * this.most;
    this.node.classList.toggle("st-columns", side);
    this.node.classList.toggle("st-rows", !side);
  }

  show(index) {
    const round = this.run.rounds[index];
    const { chips } = round;
    this.node.style.setProperty("--st-places", drafts(chips).length + 1);
    this.node.replaceChildren(before(this.run.text.slice(0, round.begins)), names(this.run.way), ...places(chips, this.run.way));
    this.sentence.textContent = told(round, this.run.way) + (index === this.run.rounds.length - 1 ? ` ${this.run.end}` : "");
    this.left.dataset.way = this.run.way;
    this.left.replaceChildren(...[leftOver(chips, this.run.way)].filter(Boolean));
    const ms = round.seconds.map((seconds) => (1000 * seconds).toFixed(1));
    this.where.textContent = `Round ${index + 1} of ${this.run.rounds.length} · drafting ${ms[0]} ms, target's pass ${ms[1]} ms`;
  }
}

function drafts(chips) {
  return chips.filter(([kind]) => "ard".includes(kind));
}

/** The target's own token: recovered, bonus or plain; none where the run ended inside the accepted drafts. */
function ownToken(chips) {
  return chips.find(([kind]) => "cbp".includes(kind));
}

/** The end of the text so far, which the round goes on from. */
function before(text) {
  const node = element("p", "", "st-before");
  node.append(element("small", "the text so far"), text.length > MAX_BEFORE ? text.slice(-MAX_BEFORE).replace(/^\S*/, "…") : text);
  return node;
}

/** What each row is, at the left of them. */
function names(way) {
  const list = element("ol", "", "st-names");
  list.setAttribute("aria-hidden", "true");
  list.append(...["target, one pass", RULES[way], "", "the text gains"].map((name) => element("li", name)));
  return list;
}

/** A position for each draft, and the one behind them. */
function places(chips, way) {
  const own = ownToken(chips);
  const judged = drafts(chips).map((chip) => place(chip, chip[0] === "r" ? own : chip, own, way));
  const used = own && own[0] !== "c";
  const all = element("div", "", `st-place st-end ${used ? "" : "st-unused"}`);
  all.append(
    element("div", used ? "no draft" : "", "st-draft"),
    element("div", used ? "draws a token" : "unused", "st-pass"),
    element("div", "", "st-chance"),
    element("div", used ? verdictOf(own) : "", `st-verdict ${used ? `st-${KINDS[own[0]]}` : ""}`),
    gain(used ? own : null),
  );
  return [...judged, all];
}

function verdictOf([kind]) {
  return kind === "b" ? "+ bonus" : "plain";
}

function place(chip, gained, own, way) {
  const [kind, text, p, q] = chip;
  const node = element("div", "", `st-place st-of-${KINDS[kind]}`);
  const draft = element("div", "", "st-draft");
  draft.append(element("span", visible(text), "st-token"), element("small", known(q) ? `q ${shown(q)}` : ""));
  node.append(
    draft,
    element("div", known(p) ? `p ${shown(p)}` : "unused", "st-pass"),
    chance(chip, own, way),
    element("div", VERDICTS[kind], `st-verdict st-${KINDS[kind]}`),
    gain(kind === "d" ? null : gained),
  );
  return node;
}

/** The acceptance probability as a bar, the uniform as a mark on it where the rule judges by that alone. */
function chance([kind, , , , u, acceptance], own, way) {
  const node = element("div", "", "st-chance");
  if (!known(acceptance)) return node;
  const bar = element("div", "", "st-track");
  const fill = element("i", "", "st-fill");
  fill.style.width = `${100 * acceptance}%`;
  bar.append(fill);
  if (way === "rejection" && known(u)) {
    const mark = element("i", "", "st-u");
    mark.style.left = `${100 * u}%`;
    bar.append(mark);
  }
  node.append(bar, ...explained(kind, u, acceptance, own, way));
  return node;
}

function explained(kind, u, acceptance, own, way) {
  if (way === "greedy") return [element("small", kind === "a" ? "the target's best" : "not the target's best")];
  if (way === "match") {
    const drew = kind === "a" ? "target drew it too" : `target drew ${quoted(own?.[1] ?? "")}`;
    return [element("small", drew)];
  }
  const limit = acceptance === 1 ? "p/q ≥ 1" : `p/q ${shown(acceptance)}`;
  return [element("small", limit), element("small", known(u) ? `u ${shown(u)}` : "")];
}

function gain(chip) {
  const node = element("div", "", "st-gain");
  if (chip) node.append(element("span", visible(chip[1]), `sd-token sd-${KINDS[chip[0]]}`));
  return node;
}

/** What happened, in a sentence or two. */
export function told({ chips, fault }, way) {
  const proposed = drafts(chips);
  const own = ownToken(chips);
  const kept = proposed.filter(([kind]) => kind === "a").length;
  const refused = proposed.find(([kind]) => kind === "r");
  if (fault) return `The drafter failed (${fault}), so the target went on alone with ${quoted(own?.[1] ?? "")}.`;
  if (!proposed.length) return `Nothing was drafted: the target's pass gave one token, ${quoted(own?.[1] ?? "")}.`;
  if (refused) return `${count(kept, proposed.length)} ${refusal(refused, own?.[1] ?? "", way)}${unread(proposed)}`;
  if (own) return `${count(kept, proposed.length)} The same pass gave one token more: the bonus ${quoted(own[1])}.`;
  return `${count(kept, proposed.length)} The run ended there${unread(proposed) ? ", before the rest was judged." : "."}`;
}

function count(kept, all) {
  if (all > 1 && kept === all) return `All ${all} drafts kept.`;
  return `${kept} of ${all} ${all === 1 ? "draft" : "drafts"} kept.`;
}

function refusal([, text, , , u, acceptance], token, way) {
  const [was, is] = [quoted(text), quoted(token)];
  if (way === "greedy") return `Where the draft said ${was}, the target's best token was ${is}: that went in.`;
  if (way === "match") return `Where the draft said ${was}, the target's own draw was ${is}: that stayed.`;
  return `At ${was} u = ${number(u)} fell above p/q = ${number(acceptance)}, so the target put in ${is} from what was left.`;
}

function unread(proposed) {
  const behind = proposed.filter(([kind]) => kind === "d").length;
  if (!behind) return "";
  return ` The ${behind === 1 ? "draft" : `${behind} drafts`} behind it ${behind === 1 ? "was" : "were"} discarded.`;
}

function number(value) {
  return known(value) ? shown(value) : "?";
}

function visible(text) {
  return text.replaceAll("\n", "↵");
}

/** A token in a sentence, kept in one piece with the space before it. */
function quoted(text) {
  return `‘${visible(text).replaceAll(" ", "\u00a0")}’`;
}
