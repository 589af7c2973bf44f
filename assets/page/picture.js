// A finished run as a picture to be kept or shown to others: drawn here, in the page's colours, sent to nobody.
//
// Texts are drawn by fillText and can be nothing but text. Lengths are in CSS pixels; the file has twice as many.

import { download } from "./download.js";
import { lastFigures } from "./last-figures.js";
import { exampleOf, flow, paint } from "./picture-text.js";
import { KINDS } from "./step-round.js";

const NAME = "specdec-run.png";
const NOTHING = "There is no run yet: generate a text under Decode, or open one under Step through.";
const WIDTH = 1000;
const SCALE = 2;
const EDGE = 44;
const INSIDE = WIDTH - 2 * EDGE;
const CARD = 26; // between a card's border and its text
const LINE = 35;
const FIGURES = 5; // in a row, as in the page
const FIGURE = 92; // how high one is
const MOST_LINES = 40;
const MOST_PROMPT = 700; // characters of the prompt, its last ones
const SANS = "system-ui, sans-serif";
const RULES = { rejection: "rejection sampling", match: "exact match", greedy: "greedy" };

/** Offer a picture of the last run as a download; resolves to what it shows, in words, or why there is none. */
export async function save() {
  const run = read(window.specdecRun?.events ?? []);
  if (!run) return NOTHING;
  const canvas = document.createElement("canvas");
  const height = draw(canvas.getContext("2d"), run); // a first time, to know how high it becomes
  canvas.width = SCALE * WIDTH;
  canvas.height = SCALE * height;
  const context = canvas.getContext("2d");
  context.scale(SCALE, SCALE);
  draw(context, run, height);
  download(NAME, await new Promise((resolve) => canvas.toBlob(resolve, "image/png")));
  return run.words;
}

/** What the picture says of a run's events; null where they hold no round. */
function read(events) {
  const of = (name) => events.findLast(({ event }) => event === name);
  const rounds = events.filter(({ event }) => event === "round");
  if (!rounds.length) return null;
  const { prompt, about, way } = of("start");
  const chips = rounds.flatMap((round) => round.chips);
  const figures = labelled(lastFigures(events));
  const counts = Object.entries(KINDS).map(([code, kind]) => [kind, chips.filter(([own]) => own === code).length]);
  const settings = [RULES[way], ...settingsOf(of("trace"))].join(" · ");
  const run = { prompt: prompt.length > MOST_PROMPT ? `…${prompt.slice(-MOST_PROMPT)}` : prompt, chips, figures };
  Object.assign(run, { counts: counts.filter(([, count]) => count), notes: [about, settings], date: today() });
  return { ...run, words: inWords(run, (of("end") ?? of("error"))?.text ?? "") };
}

/** The large figures of the Decode tab with their labels and units, as they were at the end of this run. */
function labelled(figures) {
  return [...document.querySelectorAll(".sd-figures > div")].map((shown) => {
    const box = shown.cloneNode(true);
    for (const node of box.querySelectorAll("[data-figure]")) node.textContent = figures[node.dataset.figure] ?? (node.dataset.none || "–");
    for (const mark of box.querySelectorAll(".sd-what")) mark.remove();
    const [label, value, unit] = ["dt", "b", "dd > span"].map((part) => box.querySelector(part)?.textContent.trim() ?? "");
    return { label, value, unit };
  });
}

function settingsOf(trace) {
  if (!trace) return [];
  const { lookahead, params = {} } = JSON.parse(trace.text).settings;
  const named = { "lookahead k": lookahead, temperature: params.temperature };
  if (params.top_k) named["top-k"] = params.top_k;
  if (params.top_p < 1) named["top-p"] = params.top_p;
  return Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : `${name} ${value}`));
}

function today() {
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric" }).format(new Date());
}

function inWords({ counts, figures, notes, date }, end) {
  const told = figures.map(({ label, unit, value }) => `${label} ${[value, unit].join(" ").trim()}`);
  const kinds = counts.map(([kind, count]) => `${count} ${kind}`);
  return `A run of speculative decoding, ${date}. Tokens: ${kinds.join(", ")}. ${told.join("; ")}. ${notes.join(" · ")}. ${end}`;
}

/** Draw everything from top to bottom on a sheet of that height; how high it has to be. */
function draw(context, run, height = 1) {
  const ink = colours();
  const write = (text, x, y, font, colour, most) => {
    Object.assign(context, { font, fillStyle: colour });
    context.fillText(text, x, y, most);
    return x + context.measureText(text).width;
  };
  Object.assign(context, { fillStyle: ink("page"), textBaseline: "alphabetic" });
  context.fillRect(0, 0, WIDTH, height);
  const name = write("specdec", EDGE, 72, `650 30px ${SANS}`, ink("ink"));
  write(`a run of speculative decoding, ${run.date}`, name + 16, 72, `16px ${SANS}`, ink("muted"));
  const below = card(context, ink, run, drawFigures(write, ink, run.figures, 110), write);
  run.notes.forEach((note, index) => write(note, EDGE, below + 34 + 22 * index, `14px ${SANS}`, ink("muted"), INSIDE));
  return below + 34 + 22 * run.notes.length + 16;
}

function drawFigures(write, ink, figures, top) {
  const wide = INSIDE / FIGURES;
  figures.forEach(({ label, unit, value }, index) => {
    const x = EDGE + wide * (index % FIGURES);
    const y = top + FIGURE * Math.floor(index / FIGURES);
    write(label, x, y, `14px ${SANS}`, ink("muted"), wide - 12);
    write(value, x, y + 40, `600 34px ${SANS}`, ink("ink"), wide - 12);
    write(unit, x, y + 62, `13px ${SANS}`, ink("muted"), wide - 12);
  });
  return top + FIGURE * Math.ceil(figures.length / FIGURES);
}

/** Prompt and tokens with their legend in a frame that starts at `top`; where it ends. */
function card(context, ink, run, top, write) {
  const lines = flow(context, [["prompt", run.prompt], ...run.chips], INSIDE - 2 * CARD, ink);
  const shown = lines.slice(0, MOST_LINES);
  const more = lines.slice(MOST_LINES).flat().filter(({ counts }) => counts).length;
  const text = top + CARD;
  const rule = text + LINE * (shown.length + (more > 0)) + 10;
  const legend = flow(context, legendOf(run.counts), INSIDE - 2 * CARD, ink);
  const end = rule + 12 + LINE * legend.length + 10;
  frame(context, ink, top, end, rule);
  shown.forEach((line, index) => paint(context, line, EDGE + CARD, text + LINE * index, ink));
  if (more) write(`… ${more} more ${more === 1 ? "token" : "tokens"}`, EDGE + CARD, rule - 22, `italic 16px ${SANS}`, ink("muted"));
  legend.forEach((line, index) => paint(context, line, EDGE + CARD, rule + 12 + LINE * index, ink));
  return end;
}

/** Each kind that occurs, looking as it does in the text, and how often it occurs. */
function legendOf(counts) {
  return counts.flatMap(([kind, count]) => [exampleOf(kind), ["prompt", ` ${count}`]]);
}

function frame(context, ink, top, end, rule) {
  context.beginPath();
  context.roundRect(EDGE, top, INSIDE, end - top, 16);
  context.fillStyle = ink("card");
  context.fill();
  context.strokeStyle = ink("line");
  context.lineWidth = 1;
  context.stroke();
  context.strokeRect(EDGE, rule, INSIDE, 0);
}

/** Look up the page's colours by name, in the theme that is shown. */
function colours() {
  const style = getComputedStyle(document.querySelector(".sd"));
  return (name) => style.getPropertyValue(`--sd-${name}`).trim();
}
