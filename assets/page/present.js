// Presenter mode: large type, prompt and settings out of sight, and keys that walk through the run from anywhere.
//
// What it looks like is in present.css, under the class sd-present of the root.

import { STEP_TAB } from "./step.js";
import { steerTabs } from "./tabs.js";

const MOVES = {
  " ": "play",
  ArrowLeft: "back",
  ArrowRight: "on",
  Home: "first",
  End: "last",
  "[": "slower",
  "]": "faster",
};
const TYPING = "textarea, select, [contenteditable=true], input:not([type=range], [type=checkbox], [type=radio])";

/** Called once by the header's component: `element` holds header.html. */
export function start(element) {
  const root = document.documentElement;
  const button = element.querySelector("#present");
  const keys = element.querySelector(".pr-keys");

  function present(on) {
    root.classList.toggle("sd-present", on);
    button.setAttribute("aria-pressed", on);
    button.textContent = on ? "Leave presenting" : "Present";
    keys.hidden = !on;
    window.dispatchEvent(new Event("resize")); // charts take the room they have now
  }

  function key(event) {
    const on = root.classList.contains("sd-present");
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.(TYPING)) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "p" || (on && event.key === "Escape")) take(event, () => present(event.key === "p" && !on));
    else if (on && event.key === "g") take(event, () => document.querySelector("#generate").click());
    else if (on && MOVES[event.key] && !wanted(event)) take(event, () => step(MOVES[event.key]));
  }

  button.addEventListener("click", () => present(!root.classList.contains("sd-present")));
  button.disabled = false;
  window.addEventListener("keydown", key, true); // before the views, which have keys of their own
  steerTabs();
  if (new URLSearchParams(location.search).get("present") === "1") present(true);
}

function take(event, act) {
  event.preventDefault();
  event.stopPropagation();
  act();
}

/** Whether a control under the focus makes something of a key by itself: a button of space, a token of arrows. */
function wanted({ key, target }) {
  if (key === " ") return Boolean(target.closest?.("button:not([role=tab]), a, input, summary"));
  return Boolean(target.closest?.(".sd-token, input"));
}

/** Have the Step through tab make a move; where it is not in sight, the key brings it there. */
function step(move) {
  if (!document.querySelector(".st")?.offsetParent) return document.querySelector(STEP_TAB)?.click();
  return document.dispatchEvent(new CustomEvent("specdec:step", { detail: move }));
}
