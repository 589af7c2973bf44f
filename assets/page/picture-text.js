// The text of a picture: tokens as coloured pieces, broken into lines, each kind with its line and mark.
//
// A chip is [kind, text, …] as in specdec/ui/view.py, or ["prompt", text]; a piece is a word that is drawn in one go.

import { KINDS } from "./step-round.js";

const SIZE = 20;
const SMALL = 0.76; // of it: tokens that were never judged
const SPACE = 6;
const INSET = 2; // between a piece's text and the edge of its colour
const MARKS = { rejected: "×", recovered: "↻", bonus: "+" };
const MARK = 11; // pixels that a mark takes
const DASHES = { recovered: [5, 3], discarded: [2, 2] };
const REFUSED = new Set(["rejected", "discarded"]);

/** A chip that shows what a kind looks like. */
export function exampleOf(kind) {
  const code = Object.keys(KINDS).find((key) => KINDS[key] === kind);
  return [code, `    ${kind}`];
}

/** Lines of pieces, no wider than `width`. A piece knows its place `x` in its line. */
export function flow(context, chips, width, ink) {
  const all = chips.flatMap(([code, text]) => pieces(KINDS[code] ?? code, text));
  const fitting = all.flatMap((piece) => cut(context, piece, width, ink));
  const reach = reaches(fitting);
  const lines = [[]];
  let x = 0;
  fitting.forEach((piece, index) => {
    const gap = x ? SPACE * piece.gap : 0;
    const wants = reach[index] <= width ? reach[index] : piece.width;
    if (x && x + gap + wants > width) {
      lines.push([]);
      x = 0;
    }
    piece.x = x && x + gap;
    lines.at(-1).push(piece);
    x = piece.x + piece.width;
    if (!piece.ends) return;
    lines.push([]);
    x = 0;
  });
  return lines;
}

/** How far text goes on from each piece before it may be broken. */
function reaches(all) {
  const reach = all.map(({ width }) => width);
  for (let i = all.length - 2; i >= 0; i -= 1) {
    if (!all[i + 1].gap && !all[i].ends) reach[i] += reach[i + 1];
  }
  return reach;
}

/** A text as pieces: a token is one for each of its lines, a prompt one for each word. */
function pieces(kind, text) {
  const prompt = kind === "prompt";
  const rows = text.split("\n");
  const made = rows.flatMap((row, index) => {
    const last = index === rows.length - 1;
    const words = (prompt ? row.match(/ *[^ ]+/g) : [row]) ?? [""];
    return words.map((word, place) => {
      const bare = word.replace(/^ +/, "");
      const ends = !last && place === words.length - 1;
      return {
        kind,
        gap: Math.min(word.length - bare.length, 6),
        text: ends && !prompt ? `${bare}↵` : bare,
        ends: ends && !REFUSED.has(kind),
      };
    });
  });
  const kept = made.filter(({ text: shown, ends }, index) => shown || ends || (!index && !prompt));
  if (!prompt && !REFUSED.has(kind) && kept.length) kept.at(-1).counts = true;
  return kept;
}

/** A piece with its width; in several where it is wider than a line. */
function cut(context, piece, width, ink) {
  context.font = font(piece.kind, ink);
  const beside = piece.kind === "prompt" ? 0 : 2 * INSET + (MARKS[piece.kind] ? MARK : 0);
  const wide = (text) => context.measureText(text).width + beside;
  if (wide(piece.text) <= width) return [{ ...piece, width: wide(piece.text) }];
  const parts = [""];
  for (const letter of piece.text) {
    if (wide(parts.at(-1) + letter) > width) parts.push("");
    parts[parts.length - 1] += letter;
  }
  return parts.map((text, index) => {
    const last = index === parts.length - 1;
    const own = { gap: index ? 0 : piece.gap, ends: last && piece.ends, counts: last && piece.counts };
    return { ...piece, ...own, text, width: wide(text) };
  });
}

function font(kind, ink) {
  return `${kind === "discarded" ? SIZE * SMALL : SIZE}px ${ink("read")}`;
}

/** Draw a line of pieces whose top is at `y`. */
export function paint(context, line, left, y, ink) {
  const base = y + 23;
  for (const { kind, text, x, width } of line) {
    const at = left + x;
    if (kind === "accepted" || MARKS[kind]) back(context, kind, at, y + 3, width, ink);
    context.fillStyle = ink({ prompt: "muted", plain: "ink" }[kind] ?? kind);
    context.font = "700 12px system-ui, sans-serif";
    if (MARKS[kind]) context.fillText(MARKS[kind], at + INSET, base - 6);
    context.font = font(kind, ink);
    context.fillText(text, at + (kind === "prompt" ? 0 : INSET + (MARKS[kind] ? MARK : 0)), base);
    under(context, kind, at, base, width, ink);
  }
}

function back(context, kind, x, y, width, ink) {
  context.fillStyle = ink(`${kind}-back`);
  context.beginPath();
  context.roundRect(x, y, width, 28, 4);
  context.fill();
}

/** The line of a kind: under the word, or through it where it was refused. */
function under(context, kind, x, base, width, ink) {
  if (kind === "prompt" || kind === "plain") return;
  const from = x + INSET + (MARKS[kind] ? MARK : 0);
  const rows = REFUSED.has(kind) ? [-5.5] : kind === "bonus" ? [3.5, 6.5] : [5];
  context.strokeStyle = ink(`${kind}-line`);
  context.lineWidth = kind === "bonus" ? 1.2 : 2;
  context.setLineDash(DASHES[kind] ?? []);
  for (const row of rows) {
    context.beginPath();
    context.moveTo(from, base + row);
    context.lineTo(x + width - INSET, base + row);
    context.stroke();
  }
  context.setLineDash([]);
}
