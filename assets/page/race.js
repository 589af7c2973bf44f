// The race tab: collects both lanes while they are measured, then has them replayed side by side.

import { follow } from "./live.js";
import { Replay } from "./replay.js";
import { complain, inLine } from "./status.js";
import { meaning } from "./terms.js";
import { Tip } from "./tip.js";

const MEASURED = { plain: "plain decoding", speculative: "speculative decoding" };
const HINT = "Nothing was lost: change what is wrong and race again.";

/** Called once by Gradio's component: `element` holds race.html, `props.value` the events. */
export function start(element, props, watch) {
  const race = new Race(element.querySelector(".sd-race"), props.figures);
  follow(props, watch, (events) => race.read(events));
}

class Race {
  constructor(root, figures) {
    this.root = root;
    this.figures = figures;
    this.status = root.querySelector(".sd-status");
    this.count = root.querySelector(".sd-race-count");
    this.progress = root.querySelector("progress");
    new Tip(root.querySelector(".sd-meaning"), root, ".sd-what", meaning);
    this.say("idle", "Press Race: plain against speculative decoding.");
  }

  read(events) {
    for (const event of events) this[event.event]?.(event);
  }

  say(state, text, count = "") {
    this.root.dataset.state = state;
    if (this.status.textContent !== text) this.status.textContent = text;
    this.count.textContent = count;
  }

  // One method for each kind of event, in the order in which they come.

  begin() {
    this.root.dataset.run = Number(this.root.dataset.run || 0) + 1; // which race of this page it is, for tests
    this.replay?.hide();
    complain(this.root);
    this.runs = {};
    this.say("measuring", "Starting …");
  }

  waiting({ place }) {
    this.say("measuring", inLine(place));
  }

  lane({ lane, of }) {
    this.runs[lane] = { of, rounds: [] };
    this.progress.value = 0;
    this.progress.max = of;
    this.say("measuring", `Warming up ${MEASURED[lane]} …`);
  }

  loading() {
    this.say("measuring", "Loading the models …");
  }

  start({ lane, prompt, about, note }) {
    Object.assign(this.runs[lane], { prompt, about: note ? `${about} · ${note}` : about });
    this.say("measuring", `Measuring ${MEASURED[lane]} …`);
  }

  round({ lane, tokens, ...told }) {
    const run = this.runs[lane];
    run.rounds.push({ tokens, ...told });
    this.progress.value = tokens;
    this.count.textContent = `${tokens} of ${run.of} tokens`;
  }

  stopped({ text }) {
    this.say("stopped", text);
  }

  error({ text, hint = HINT }) {
    complain(this.root, text);
    this.say("error", hint);
  }

  /** `runs`: each lane's run once more, in the events of one under Decode. */
  verdict({ runs, ...says }) {
    for (const [lane, events] of Object.entries(runs)) this.runs[lane].events = events;
    this.replay ??= new Replay(this.root, this.figures, (...said) => this.say(...said));
    this.replay.show(this.runs, says);
  }
}
