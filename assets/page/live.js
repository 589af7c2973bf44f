// The live panel: reads the text of events that the server grows, a JSON object a line, and draws what is new.
//
// Text from a prompt or a model is only ever set through textContent. The value grows at its end; where it does not
// go on from what was read (a new run), everything starts over.

import { LiveCharts } from "./live-charts.js";
import { watchOver } from "./lost.js";
import { complain, inLine } from "./status.js";
import { meaning } from "./terms.js";
import { Tip } from "./tip.js";
import { TokenView } from "./tokens.js";

const RUNNING = new Set(["waiting", "running"]);
const DEFINED = "Point at an i to read what a figure means.";
const NEXT = "After the text, plain decoding of the same prompt is measured: that tells the speed-up.";
const BEFORE = "Speed-up against the plain lane of the run before; this run's own is measured after the text.";
const ALONE = "Nothing drafts here: this is plain decoding, which a speed-up is told against.";
const UNKNOWN = "Plain decoding was not measured in this run.";
const HINT = "Nothing was lost: change what is wrong and generate again.";

/** Called once by Gradio's component: `element` holds live.html, `props.value` the events, `watch` reports changes. */
export function start(element, props, watch) {
  const panel = new Panel(element.querySelector(".sd"), props.figures);
  const gather = gatherer();
  const add = follow(props, watch, (events) => {
    panel.show(events);
    events.forEach(gather);
  });
  document.addEventListener("specdec:open", ({ detail }) => {
    const [begin, ...others] = parsed(detail.text);
    add([{ ...begin, opened: true }, ...others]);
  });
}

/**
 * Hand on the events that are new, all of a frame at once, and an error of our own where the server has gone; returns a
 * way to hand over events from elsewhere.
 */
export function follow(props, watch, show) {
  let seen = "";
  let unread = [];
  let asked = false;
  const heed = watchOver((lost) => add([lost]));

  function draw() {
    asked = false;
    const events = unread;
    unread = [];
    show(events);
  }

  function add(events) {
    heed(events);
    unread.push(...events);
    if (!asked) requestAnimationFrame(draw);
    asked = true;
  }

  function read() {
    const value = props.value || "";
    if (!value.startsWith(seen)) seen = "";
    const fresh = value.slice(seen.length);
    seen = value;
    add(parsed(fresh));
  }

  watch("value", read);
  read();
  return add;
}

/** Lines of JSON as events. */
function parsed(text) {
  const lines = text.split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

/** Keeps a run's events and, when it has ended, tells the page of them: whoever comes late finds the last run. */
function gatherer() {
  let events = [];
  return (event) => {
    if (event.event === "begin") events = [];
    events.push(event);
    if (event.event !== "end" && event.event !== "error") return;
    window.specdecRun = { events };
    document.dispatchEvent(new CustomEvent("specdec:run", { detail: window.specdecRun }));
  };
}

class Panel {
  constructor(root, figures) {
    this.root = root;
    this.status = root.querySelector(".sd-status");
    this.about = root.querySelector(".sd-about");
    this.tokens = new TokenView(root);
    this.charts = new LiveCharts(root, figures);
    this.why = root.querySelector(".sd-why");
    new Tip(root.querySelector(".sd-meaning"), root.querySelector(".sd-figures"), ".sd-what", meaning);
    this.explain(DEFINED);
    this.say("idle", "Press Generate and watch each guess being judged.");
  }

  show(events) {
    for (const event of events) this[event.event]?.(event);
    this.tokens.flush();
    this.charts.flush(!RUNNING.has(this.root.dataset.state));
  }

  say(state, text) {
    this.root.dataset.state = state;
    this.status.textContent = text;
  }

  /** A line below the figures, on what the speed-up is told against. */
  explain(text, outcome = "") {
    this.why.textContent = text;
    this.root.dataset.outcome = outcome;
  }

  // One method for each kind of event, in the order in which they come.

  begin({ opened }) {
    this.root.dataset.run = Number(this.root.dataset.run || 0) + 1; // which run of this page it is, for tests
    complain(this.root);
    this.about.textContent = "";
    this.tokens.reset();
    this.charts.reset();
    for (const node of this.root.querySelectorAll("[data-figure]")) node.textContent = node.dataset.none || "–";
    this.root.dataset.lane = "own";
    this.explain(DEFINED);
    this.say("running", "Starting …");
    if (!opened) this.reveal();
  }

  waiting({ place }) {
    this.say("waiting", inLine(place));
  }

  loading() {
    this.say("running", "Loading the models …");
  }

  start({ prompt, about, note, drafts, k, plain }) {
    this.charts.start({ drafts, k, plain });
    this.unknown = drafts && !plain;
    this.explain(!drafts ? ALONE : plain ? BEFORE : NEXT);
    this.tokens.prompt(prompt);
    this.inForce = note ? `${about} · ${note}` : about;
    this.about.textContent = this.inForce;
    this.say("running", "Generating …");
  }

  round({ n, chips, figures, points, seconds, fault, paused }) {
    if (fault) this.about.textContent = `${this.inForce} · round ${n + 1} had no drafts: ${fault}`;
    if (paused) {
      this.about.textContent = `${this.inForce} · after round ${n + 1} ${paused}`;
      this.say("running", "Drafting is paused, the target goes on alone …");
    }
    this.tokens.add(n, chips);
    this.charts.add({ n, points, seconds });
    this.figures(figures);
  }

  comparing() {
    this.root.dataset.lane = "plain";
    this.charts.compare();
    this.say("running", "Measuring plain decoding to compare …");
  }

  plain(step) {
    this.charts.measured(step);
  }

  compared({ figures, outcome, speed, text }) {
    this.charts.compared(speed);
    this.figures(figures);
    this.explain(text, outcome);
    this.unknown = false;
  }

  end({ reason, text }) {
    complain(this.root); // a server that was given up may have gone on
    if (this.unknown) this.explain(UNKNOWN);
    this.say(reason === "cancelled" ? "stopped" : "done", text);
  }

  error({ text, hint = HINT }) {
    complain(this.root, text);
    this.say("error", hint);
  }

  figures(values) {
    for (const [name, text] of Object.entries(values)) {
      this.root.querySelector(`[data-figure="${name}"]`).textContent = text;
    }
  }

  /** The result may lie in a tab that is not in front, and on a small screen below the button: bring it into sight. */
  reveal() {
    if (!this.root.offsetParent) document.querySelector("#decode-view-button")?.click();
    const top = this.root.getBoundingClientRect().top;
    if (top > window.innerHeight * 0.6) this.root.scrollIntoView({ block: "start", behavior: "smooth" });
  }
}
