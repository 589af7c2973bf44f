// Step through: one round of a finished run at a time, played or by hand, and runs to and from files.
//
// The Decode tab hands over a run's events when it has ended, see live.js. A file's text goes to the server, which
// checks it and answers with the events of that run; they are shown there and here as if the run had just been made.

import { download } from "./download.js";
import { save } from "./picture.js";
import { complain } from "./status.js";
import { Picture } from "./step-round.js";

const READ_ALOUD_S = 2; // a sentence that changes faster than this is not read to anybody
const KEYS = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", " ": "play" };
const MOVES = new Set([...Object.values(KEYS), "slower", "faster"]); // that others may ask for
export const STEP_TAB = "#step-view-button";
const BUSY = ".sd:is([data-state=running], [data-state=waiting])";
const CONTROLS = "input, textarea, select, a, button:not([role=tab]), [contenteditable=true]";

/** Called once by Gradio's component: `element` holds step.html, `server` the functions that Python offers. */
export function start(element, props, server) {
  const view = new StepView(element.querySelector(".st"));
  const files = new Files(view, props.max_bytes, server);
  const take = ({ events }) => {
    view.load(events);
    files.ready();
  };
  document.addEventListener("specdec:run", ({ detail }) => take(detail));
  document.addEventListener("specdec:step", ({ detail }) => MOVES.has(detail) && view[detail]());
  if (window.specdecRun) take(window.specdecRun);
}

/** Show a finished run, from the text of its events, here and under Decode; why that cannot be, or nothing. */
export function openRun(text) {
  if (document.querySelector(BUSY)) return "A run is still going on: open this one when it has ended.";
  document.dispatchEvent(new CustomEvent("specdec:open", { detail: { text } }));
  document.querySelector(STEP_TAB)?.click();
  return "";
}

class StepView {
  constructor(root) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    this.picture = new Picture(root);
    this.scrub = this.find(".st-scrub");
    this.pace = this.find("select");
    this.run = null;
    this.index = 0;
    this.frame = 0;
    root.addEventListener("click", ({ target }) => this[target.closest("[data-do]")?.dataset.do]?.());
    this.scrub.addEventListener("input", () => this.go(this.scrub.value - 1));
    this.pace.addEventListener("change", () => this.tempo());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** Take a run's events and show its first round; one without rounds is left aside. */
  load(events) {
    const run = readRun(events);
    if (!run.rounds.length) return;
    this.pause();
    this.run = run;
    this.scrub.max = run.rounds.length;
    this.root.dataset.state = "paused";
    this.picture.begin(run);
    this.go(0);
  }

  /** Show a round, paused unless it is the play button that turns the pages. */
  go(index) {
    if (!this.run) return;
    this.pause();
    this.show(Math.min(Math.max(0, index), this.run.rounds.length - 1));
  }

  show(index) {
    const count = this.run.rounds.length;
    this.index = index;
    this.scrub.value = index + 1;
    this.scrub.setAttribute("aria-valuetext", `round ${index + 1} of ${count}`);
    this.picture.show(index);
    for (const name of ["first", "back"]) this.disable(name, index === 0);
    for (const name of ["on", "last"]) this.disable(name, index === count - 1);
  }

  /** A button at its end is only marked, so that it keeps the focus of whoever pressed it. */
  disable(name, yes) {
    this.find(`[data-do="${name}"]`).setAttribute("aria-disabled", yes);
  }

  first() {
    this.go(0);
  }

  back() {
    this.go(this.index - 1);
  }

  on() {
    this.go(this.index + 1);
  }

  last() {
    this.go(Infinity);
  }

  play() {
    if (!this.run) return;
    if (this.playing) return void this.pause();
    if (this.index === this.run.rounds.length - 1) this.show(0);
    this.playing = true;
    this.tempo();
    this.picture.show(this.index);
    this.due = performance.now() + this.duration();
    this.frame = requestAnimationFrame((now) => this.turn(now));
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.playing = false;
    this.tempo();
  }

  slower() {
    this.tilt(-1);
  }

  faster() {
    this.tilt(1);
  }

  /** Choose the next pace in the list, which goes from slow to fast. */
  tilt(by) {
    const { selectedIndex, length } = this.pace;
    this.pace.selectedIndex = Math.min(Math.max(0, selectedIndex + by), length - 1);
    this.tempo();
  }

  /** Rounds that are over by now are turned over in one go: a screen has fewer frames than an engine rounds. */
  turn(now) {
    if (!this.root.offsetParent) return this.pause();
    const last = this.run.rounds.length - 1;
    let index = this.index;
    while (now >= this.due && index < last) {
      index += 1;
      this.due += this.duration(index);
    }
    if (index !== this.index) this.show(index);
    if (index === last) return this.pause();
    this.frame = requestAnimationFrame((then) => this.turn(then));
    return undefined;
  }

  /** How long a round is shown, in milliseconds. */
  duration(index = this.index) {
    const chosen = this.pace.value;
    const real = this.run.rounds[index].seconds.reduce((sum, seconds) => sum + seconds, 0);
    return 1000 * (chosen.startsWith("x") ? real * Number(chosen.slice(1)) : Number(chosen));
  }

  /** What follows from whether, and how fast, the run is played. */
  tempo() {
    const seconds = Number(this.pace.value) || 0;
    this.root.dataset.state = this.playing ? "playing" : this.run ? "paused" : "empty";
    this.root.classList.toggle("st-slow", this.playing && seconds >= 1);
    this.root.style.setProperty("--st-round", `${seconds}s`);
    this.find('[data-do="play"] span').textContent = this.playing ? "Pause" : "Play";
    this.find(".st-sentence").setAttribute("aria-live", this.playing && seconds < READ_ALOUD_S ? "off" : "polite");
  }

  /** Keys count while the view has the focus, or the pointer is over it and no other control could want them. */
  key(event) {
    const { key, target } = event;
    const here = this.root.contains(target) || (this.root.matches(":hover") && !target.closest(CONTROLS));
    if (!here || !KEYS[key] || event.ctrlKey || event.altKey || event.metaKey || own(target, key)) return;
    event.preventDefault();
    this[KEYS[key]]();
  }
}

/** Whether a control makes something of a key by itself. */
function own(target, key) {
  if (target.matches("select")) return true;
  return key === " " ? target.matches("button") : target.matches("input");
}

/** A run as the view needs it: its rounds, what stood before each of them, and its file. */
function readRun(events) {
  const run = { rounds: [], way: "rejection", end: "", trace: "", text: "" };
  for (const event of events) {
    if (event.event === "start") Object.assign(run, { way: event.way, text: event.prompt });
    if (event.event === "trace") run.trace = event.text;
    if (event.event === "end" || event.event === "error") run.end = event.text;
    if (event.event === "round") {
      run.rounds.push({ ...event, begins: run.text.length });
      for (const [kind, text] of event.chips) if (kind !== "r" && kind !== "d") run.text += text;
    }
  }
  return run;
}

/** The buttons for files. */
class Files {
  constructor(view, maxBytes, server) {
    this.view = view;
    this.maxBytes = maxBytes;
    this.server = server;
    this.save = view.find('[data-do="save"]');
    this.picture = view.find('[data-do="draw"]');
    this.input = view.find(".st-file");
    const open = view.find('[data-do="open"]');
    open.addEventListener("click", () => this.input.click());
    open.disabled = false; // from now on it does something
    this.save.addEventListener("click", () => this.keep());
    this.picture.addEventListener("click", save);
    this.input.addEventListener("change", () => this.chosen());
  }

  /** A run can be saved if it came with its trace: one that ended in an error did not. */
  ready() {
    this.save.disabled = !this.view.run?.trace;
    this.picture.disabled = !this.view.run;
  }

  keep() {
    download("specdec-run.json", new Blob([this.view.run.trace, "\n"], { type: "application/json" }));
  }

  async chosen() {
    const [file] = this.input.files;
    this.input.value = ""; // the same file may be chosen again
    if (file) complain(this.view.root, await this.open(file));
  }

  /** Show a file's run; what was wrong with it, or nothing. */
  async open(file) {
    if (file.size > this.maxBytes) return `The file is larger than ${this.maxBytes / 1e6} MB.`;
    const answer = await file
      .text()
      .then((text) => this.server.open_run(text))
      .catch(() => ({ error: "The file could not be read." }));
    return answer.error || openRun(answer.events);
  }
}
