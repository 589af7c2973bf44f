// The badge in the header and what it opens: the test of losslessness, run here and now, a row for each part of it.
//
// The test itself runs on the server: its buttons are Gradio's, kept out of sight, and pressed from here.

import { follow } from "./live.js";
import { element } from "./tip.js";

const BADGES = {
  untested: "lossless: test it",
  going: "lossless: testing …",
  passed: "lossless: tested ✓",
  untold: "lossless: cannot tell here",
  failed: "lossless: test failed ✗",
};

/** Called once by Gradio's component: `element` holds honest.html, `props.value` the events. */
export function start(element, props, watch) {
  const test = new Test(element.querySelector("dialog"));
  follow(props, watch, (events) => test.read(events));
  document.addEventListener("specdec:run", ({ detail }) => test.ran(detail.events));
}

class Test {
  constructor(root) {
    this.root = root;
    this.find = (selector) => root.querySelector(selector);
    root.addEventListener("click", ({ target }) => this[target.closest("[data-do]")?.dataset.do]?.());
    root.addEventListener("close", () => this.stop());
    document.addEventListener("click", ({ target }) => target.closest("#honest-open") && root.showModal());
  }

  // What the dialog's own buttons do.

  run() {
    document.getElementById("honest-run").click();
  }

  stop() {
    if (this.root.dataset.state === "going") document.getElementById("honest-stop").click();
  }

  close() {
    this.root.close();
  }

  read(events) {
    for (const event of events) this[`on_${event.event}`]?.(event);
  }

  say(state, text) {
    this.root.dataset.state = state;
    this.find('[data-do="run"]').hidden = state === "going";
    this.find('[data-do="stop"]').hidden = state !== "going";
    this.find(".hn-status").textContent = text;
    const badge = document.getElementById("honest-open");
    badge.dataset.state = BADGES[state] ? state : "untested";
    badge.querySelector("span").textContent = BADGES[badge.dataset.state];
  }

  // One method for each kind of event.

  on_begin() {
    this.find(".hn-alert").hidden = true;
    this.find("tbody").replaceChildren();
    this.find("table").hidden = true;
    document.getElementById("honest-open").title = "";
    this.say("going", "Starting …");
  }

  on_waiting({ place }) {
    this.say("going", `Waiting for its turn: ${place === 1 ? "one run is" : `${place} runs are`} before this one.`);
  }

  on_loading() {
    this.say("going", "Loading the models …");
  }

  on_row({ test, cells, state }) {
    const row = element("tr");
    row.dataset.test = test;
    row.dataset.state = state;
    row.append(element("th", cells[0]), ...cells.slice(1).map((text) => element("td", text)));
    row.firstChild.scope = "row";
    const before = this.find(`tr[data-test="${test}"]`);
    if (before) before.replaceWith(row);
    else this.find("tbody").append(row);
    this.find("table").hidden = false;
    if (state === "going") this.say("going", "Testing …");
  }

  /** The badge stays as it is while settings change: what was tested is told with it. */
  on_end({ state, text, about }) {
    const tested = BADGES[state] ? `Tested: ${about}.` : "";
    this.say(state, `${text} ${tested}`);
    document.getElementById("honest-open").title = tested;
  }

  on_error({ text }) {
    this.find(".hn-alert").textContent = text;
    this.find(".hn-alert").hidden = false;
    this.say("error", "Nothing was decided.");
  }

  /** Which promise the last run under Decode was made with: the last part of what it says was in force. */
  ran(events) {
    const about = events.find(({ event }) => event === "start")?.about;
    const line = this.find(".hn-last");
    line.hidden = !about;
    line.textContent = about ? `Your last run: ${about.split(" · ").at(-1)}.` : "";
  }
}
