// The guided start: three steps, each with two sentences and a button that sets the settings and runs.
//
// It opens only when asked to, lies below the page and not over it, and remembers where it was left.

import { lastFigures } from "./last-figures.js";

const REMEMBERED = "specdec.guide";
const BUSY = ".sd:is([data-state=running], [data-state=waiting])";

/** Called once by the header's component: `element` holds header.html, `props.steps` the texts. */
export function start(element, props, trigger) {
  new Guide(element, props.steps, trigger);
}

class Guide {
  constructor(element, steps, trigger) {
    this.button = element.querySelector("#guide-open");
    this.root = element.querySelector(".gd");
    this.steps = steps;
    this.trigger = trigger;
    this.said = steps.map(() => "");
    this.running = null;
    this.index = Math.min(remembered(), steps.length - 1);
    this.button.classList.toggle("gd-new", this.index < 0);
    this.button.addEventListener("click", () => (this.root.hidden ? this.open() : this.close()));
    this.root.addEventListener("click", ({ target }) => this[target.closest("[data-do]")?.dataset.do]?.());
    this.root.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("specdec:run", ({ detail }) => this.ran(detail.events));
    this.button.disabled = false; // before this a click would be lost
  }

  open() {
    this.show(Math.max(0, this.index));
    this.set(true);
    this.root.querySelector("h2").focus({ preventScroll: true });
  }

  close() {
    this.set(false);
    this.button.focus({ preventScroll: true });
  }

  set(open) {
    this.root.hidden = !open;
    this.button.setAttribute("aria-expanded", open);
    this.button.classList.remove("gd-new");
    document.documentElement.classList.toggle("gd-on", open);
  }

  key(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.close();
  }

  show(index) {
    this.index = index;
    remember(index);
    const { title, text } = this.steps[index];
    const last = index === this.steps.length - 1;
    this.write(".gd-count", `Guided start · ${index + 1} of ${this.steps.length}`);
    this.write("h2", title);
    this.write(".gd-text", text);
    this.write(".gd-said", this.said[index]);
    this.write('[data-do="on"]', last ? "Done" : "Next");
    this.root.querySelector('[data-do="back"]').disabled = index === 0;
  }

  write(selector, text) {
    this.root.querySelector(selector).textContent = text;
  }

  back() {
    this.show(this.index - 1);
  }

  on() {
    if (this.index < this.steps.length - 1) return this.show(this.index + 1);
    remember(0);
    this.index = 0;
    return this.close();
  }

  run() {
    if (document.querySelector(BUSY)) return this.write(".gd-said", "A run is still going on: wait for it, or press Stop.");
    this.running = this.index;
    this.write(".gd-said", "");
    return this.trigger("select", { step: this.index });
  }

  /** Say what came of a step, in the page's own figures. */
  ran(events) {
    const figures = lastFigures(events);
    if (this.running === null || !figures.rounds) return;
    this.said[this.running] = `Here: draft acceptance rate ${figures.acceptance} %, τ = ${figures.length} tokens a round.`;
    if (this.running === this.index) this.write(".gd-said", this.said[this.index]);
    this.running = null;
  }
}

/** The step that was shown last, −1 for whoever has not been here. A browser may refuse to remember anything. */
function remembered() {
  try {
    const index = Number.parseInt(localStorage.getItem(REMEMBERED), 10);
    return index >= 0 ? index : -1;
  } catch {
    return -1;
  }
}

function remember(index) {
  try {
    localStorage.setItem(REMEMBERED, index);
  } catch {
    // then it begins anew next time
  }
}
