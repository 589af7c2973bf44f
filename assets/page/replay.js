// The replay of a race: two lanes, their clock and their chart, in the engine's own time.

import { Charts, push } from "./charts.js";
import { complain } from "./status.js";
import { openRun } from "./step.js";
import { marked } from "./terms.js";
import { TokenView } from "./tokens.js";

const TITLES = {
  plain: "Plain: the target alone",
  speculative: "Speculative: drafts, checked by the target",
};
const SPEEDS = { 1: "in real time", 0.25: "at 1/4 of real time", 0.1: "at 1/10 of real time" };
const WORTH_SEEING = 3; // seconds: a shorter replay begins slower, until somebody chooses a speed
const REDRAW_MS = 100; // of the chart: nothing is measured during a replay

/** Two lanes, a chart and a clock, made when the first race is over and used again by later ones. */
export class Replay {
  constructor(root, figures, say) {
    this.say = say;
    this.parts = [...clone(root, ".sd-race-parts").children];
    root.append(...this.parts);
    this.lanes = Object.entries(TITLES).map(([name, title]) => new Lane(clone(root, ".sd-lane-parts"), name, title));
    root.querySelector(".sd-lanes").append(...this.lanes.map((lane) => lane.root));
    for (const lane of this.lanes) {
      lane.root.querySelector(".sd-steps").addEventListener("click", () => complain(root, openRun(lane.run.events)));
    }
    this.chart = new Track(root, structuredClone(figures));
    this.says = root.querySelectorAll("[data-says]");
    this.result = root.querySelector(".sd-verdict");
    this.button = root.querySelector(".sd-replay");
    this.speeds = root.querySelector("fieldset");
    this.button.addEventListener("click", () => (this.frame ? this.skip() : this.play()));
    this.speeds.addEventListener("change", ({ target }) => this.choose(target.value));
  }

  hide() {
    this.halt();
    for (const part of this.parts) part.hidden = true;
  }

  show(runs, says) {
    for (const part of this.parts) part.hidden = false;
    for (const lane of this.lanes) lane.take(runs[lane.name]);
    this.told = says;
    this.result.dataset.outcome = says.outcome;
    this.longest = Math.max(...this.lanes.map((lane) => lane.seconds));
    this.shortest = Math.min(...this.lanes.map((lane) => lane.seconds));
    this.chart.scale(this.longest, Math.max(...this.lanes.map((lane) => lane.total)));
    if (!this.chosen) this.slowEnough();
    this.play();
  }

  slowEnough() {
    const speeds = [...this.speeds.querySelectorAll("input")];
    const slow = speeds.find(({ value }) => this.longest / value >= WORTH_SEEING) || speeds.at(-1);
    slow.checked = true;
    this.speed = slow.value;
  }

  choose(speed) {
    this.chosen = true;
    this.speed = speed;
    if (this.frame) this.announce();
  }

  announce() {
    this.say("replaying", `Replaying both ${SPEEDS[this.speed]}.`);
  }

  play() {
    this.halt();
    for (const lane of this.lanes) lane.rewind();
    this.chart.reset();
    this.tell(false); // laid out already, so that nothing moves when it is shown
    this.time = 0;
    this.last = null;
    this.button.textContent = "Skip to the end";
    this.announce();
    this.next();
  }

  next() {
    this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  halt() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  skip() {
    this.halt();
    this.advance(this.longest);
  }

  tick(now) {
    const passed = this.last === null ? 0 : (now - this.last) / 1000;
    this.last = now;
    this.advance(Math.min(this.longest, this.time + passed * this.speed));
  }

  advance(time) {
    this.time = time;
    this.lanes.forEach((lane, index) => {
      for (const { at, tokens } of lane.advance(time, this.shortest)) this.chart.add(index, at, tokens);
    });
    this.chart.flush(time >= this.longest);
    if (time < this.longest) this.next();
    else this.finish();
  }

  finish() {
    this.frame = 0;
    this.button.textContent = "Replay";
    this.tell(true);
    this.say("done", "Finished.");
  }

  tell(shown) {
    this.result.classList.toggle("sd-unsaid", !shown);
    for (const node of this.says) node.replaceChildren(...marked(this.told[node.dataset.says]));
  }
}

class Lane {
  constructor(fragment, name, title) {
    this.name = name;
    this.root = fragment.firstElementChild;
    this.root.dataset.name = name;
    this.root.setAttribute("aria-label", title);
    this.root.querySelector("h2").textContent = title;
    this.root.querySelector(".sd-text").setAttribute("aria-label", `Text, ${name}`);
    this.root.querySelector(".sd-tip").id = `sd-tip-${name}`;
    this.fill = this.root.querySelector(".sd-track i");
    this.mark = this.root.querySelector(".sd-mark");
    this.speed = this.root.querySelector("[data-lane=speed]");
    this.elapsed = this.root.querySelector("[data-lane=elapsed]");
    this.tokens = new TokenView(this.root);
  }

  take(run) {
    this.run = run;
    this.seconds = run.rounds.at(-1)?.at ?? 0;
    this.total = run.rounds.at(-1)?.tokens ?? 0;
    this.root.querySelector(".sd-lane-about").textContent = run.about;
  }

  rewind() {
    this.done = 0;
    this.tokens.reset();
    this.tokens.prompt(this.run.prompt);
    this.speed.textContent = "–";
    this.mark.textContent = "";
    this.fill.style.width = "0";
    this.root.dataset.state = "running";
  }

  /** Show what was there by `time`; the rounds that are new. `first` is when the faster lane was through. */
  advance(time, first) {
    const { rounds } = this.run;
    const from = this.done;
    while (this.done < rounds.length && rounds[this.done].at <= time) this.done += 1;
    const fresh = rounds.slice(from, this.done);
    for (const { n, chips, proposed } of fresh) this.tokens.add(n, chips, proposed);
    this.tokens.flush();
    this.elapsed.textContent = Math.min(time, this.seconds).toFixed(2);
    if (fresh.length) this.measure(fresh.at(-1));
    if (this.done === rounds.length) this.finish(first);
    return fresh;
  }

  measure({ speed, tokens }) {
    this.speed.textContent = speed;
    this.fill.style.width = `${(100 * tokens) / this.total}%`;
  }

  finish(first) {
    this.root.dataset.state = "done";
    this.mark.textContent = this.seconds > first ? `⚑ ${(this.seconds - first).toFixed(2)} s later` : "⚑ first";
  }
}

/** Tokens against seconds, on axes that hold the whole race from its start. */
class Track extends Charts {
  reset() {
    this.lanes = Object.keys(TITLES).map(() => ({ x: [0], y: [0] }));
    super.reset();
  }

  plots() {
    return { race: this.lanes };
  }

  scale(seconds, tokens) {
    for (const { race } of Object.values(this.figures)) {
      race.layout.xaxis.autorangeoptions = { include: [0, seconds] };
      race.layout.yaxis.autorangeoptions = { include: [0, tokens] };
    }
  }

  add(lane, seconds, tokens) {
    push(this.lanes[lane], seconds, tokens);
  }

  flush(now) {
    if (!now && performance.now() - (this.grown || 0) < REDRAW_MS) return;
    this.grown = performance.now();
    this.grow(true);
  }
}

function clone(root, name) {
  return root.querySelector(name).content.cloneNode(true);
}
