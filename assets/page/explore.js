// The Explore tab: a sweep's progress, its points beside the theory's curve, its numbers as tables.

import { Charts, theme } from "./charts.js";
import { follow } from "./live.js";
import { complain, inLine } from "./status.js";
import { WhatIf } from "./whatif.js";

const WHATIF = 0; // the figure's traces, see explore_charts.py
const THEORY = 1;
const MEASURED = 2;
const HOTTEST = 2.5; // a speed-up with the strongest colour
const HINT = "Nothing was lost: change what is wrong and explore again.";

/** Called once by Gradio's component: `element` holds explore.html, `props.value` the events. */
export function start(element, props, watch) {
  const explore = new Explore(element.querySelector(".sd-explore"), props);
  follow(props, watch, (events) => explore.read(events));
}

class Explore {
  constructor(root, { figures, most }) {
    this.root = root;
    this.status = root.querySelector(".sd-status");
    this.count = root.querySelector(".sd-explore-count");
    this.progress = root.querySelector("progress");
    this.curves = new Curves(root, figures);
    this.whatIf = new WhatIf(root.querySelector("fieldset"), most, (curve) => this.curves.set({ [WHATIF]: curve }));
    this.say("idle", "Press Explore: plain decoding and every k take turns on your prompt.");
  }

  read(events) {
    for (const event of events) this[event.event]?.(event);
  }

  say(state, text, count = "") {
    this.root.dataset.state = state;
    if (this.status.textContent !== text) this.status.textContent = text;
    this.count.textContent = count;
  }

  part(selector) {
    return this.root.querySelector(`[data-of=${this.vary}] ${selector}`);
  }

  // One method for each kind of event, in the order in which they come.

  begin() {
    this.root.dataset.run = Number(this.root.dataset.run || 0) + 1; // which sweep of this page it is, for tests
    complain(this.root);
    this.progress.value = 0;
    this.say("measuring", "Starting …");
  }

  plan({ vary }) {
    this.vary = vary;
    this.root.dataset.shows = vary;
    this.part(".sd-finding").hidden = true;
    if (vary === "lookahead") this.curves.set({ [THEORY]: { x: [], y: [] }, [MEASURED]: { x: [], y: [] } });
  }

  waiting({ place }) {
    this.say("measuring", inLine(place));
  }

  loading() {
    this.say("measuring", "Loading the models …");
  }

  warming() {
    this.say("measuring", "Warming up …");
  }

  step({ text, n, of }) {
    this.progress.max = of;
    this.progress.value = n - 1;
    this.say("measuring", "Measuring …", `${text} · ${n} of ${of}`);
  }

  round({ done }) {
    this.progress.value = done;
  }

  lookahead({ rows, points, curve, letters, about }) {
    this.letters = letters;
    this.curves.set({ [THEORY]: series(curve), [MEASURED]: series(points) });
    this.root.querySelector(".sd-explore-about").textContent = about;
    fill(this.part("tbody"), rows.map((cells) => row(cells.map((text, index) => cell(index ? "td" : "th", text)))));
    this.part(".sd-numbers").hidden = false;
  }

  models({ columns, rows }) {
    fill(this.part("thead"), [row(["target", "plain", ...columns].map((text) => cell("th", text, "col")))]);
    fill(this.part("tbody"), rows.map(({ target, plain, cells }) =>
      row([cell("th", target), cell("td", plain), ...cells.map(heated)])));
    this.part(".sd-scroll").hidden = false;
  }

  stopped({ text }) {
    this.say("stopped", text);
  }

  error({ text, hint = HINT }) {
    complain(this.root, text);
    this.say("error", hint);
  }

  found({ outcome, text, note }) {
    const finding = this.part(".sd-finding");
    finding.dataset.outcome = outcome;
    finding.textContent = text;
    finding.hidden = false;
    if (this.vary === "lookahead" && this.letters) this.whatIf.start(this.letters);
    this.say("done", note);
  }
}

/** The chart, drawn as a whole each time: it has few points. */
class Curves extends Charts {
  reset() {
    this.series = [WHATIF, THEORY, MEASURED].map(() => ({ x: [], y: [] }));
    this.draw();
  }

  set(changed) {
    Object.assign(this.series, changed);
    this.draw();
  }

  draw() {
    if (!window.Plotly) return;
    this.painted = theme();
    this.react("explore", this.series);
  }
}

function series(points) {
  return { x: points.map(([x]) => x), y: points.map(([, y]) => y) };
}

function fill(body, rows) {
  body.replaceChildren(...rows);
}

function row(cells) {
  const node = document.createElement("tr");
  node.append(...cells);
  return node;
}

function cell(tag, text, scope = "row") {
  const node = document.createElement(tag);
  if (tag === "th") node.scope = scope;
  node.textContent = text;
  return node;
}

/** A cell of the table of models: the faster, the greener; slower is striped. `told` null: not measured yet. */
function heated(told) {
  const node = cell("td", told ? told.text : "…");
  if (!told) return node;
  const note = document.createElement("small");
  note.textContent = told.note;
  node.append(note);
  if (told.times === undefined) return node;
  node.dataset.heat = told.times < 1 ? "slower" : "faster";
  node.style.setProperty("--sd-heat", Math.min(1, Math.max(0, told.times - 1) / (HOTTEST - 1)).toFixed(2));
  return node;
}
