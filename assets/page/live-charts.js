// The four charts of a run: acceptance, speed beside the plain lane's, drafts accepted, time by phase.

import { Charts, push } from "./charts.js";

export class LiveCharts extends Charts {
  reset() {
    this.alone = line();
    this.running = line();
    this.lane = line();
    this.plain = line();
    this.accepted = { x: [] };
    this.phases = [line(), line(), line()];
    this.before = null;
    this.tokens = 0;
    super.reset();
  }

  plots() {
    return {
      acceptance: [this.alone, this.running],
      speed: [this.lane, this.plain],
      lengths: [this.accepted],
      phases: this.phases,
    };
  }

  /** What a run is: with `drafts` or itself plain, `k` of them a round if that is fixed, the `plain` speed known. */
  start({ drafts, k, plain }) {
    this.own = drafts ? this.lane : this.plain;
    this.before = drafts ? plain : null;
    for (const { lengths } of Object.values(this.figures)) {
      lengths.layout.xaxis.autorangeoptions.include = [-0.5, (k || 3) + 0.5];
    }
    if (window.Plotly) this.react("lengths", [this.accepted]);
  }

  add({ n, points, seconds }) {
    const [alone, running, accepted, tokens, speed] = points;
    this.tokens = tokens;
    if (alone !== null) push(this.alone, n + 1, alone);
    if (running !== null) push(this.running, n + 1, running);
    if (accepted !== null) this.accepted.x.push(accepted);
    if (speed !== null) push(this.own, tokens, speed);
    if (speed !== null && this.before) push(this.plain, tokens, this.before);
    seconds.forEach((part, phase) => push(this.phases[phase], n + 1, 1000 * part));
  }

  /** The run's own plain lane takes the place of the one before. */
  compare() {
    this.plain = line();
    if (window.Plotly) this.react("speed", [this.lane, this.plain]);
  }

  measured({ tokens, speed }) {
    push(this.plain, tokens, speed);
  }

  /** The plain lane's result, drawn as far as the run goes. */
  compared(speed) {
    if (!this.plain.x.length) push(this.plain, 1, speed);
    push(this.plain, this.tokens, speed);
  }
}

function line() {
  return { x: [], y: [] };
}
