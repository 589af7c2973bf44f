// What every view says in the same words: what is wrong, and which place in the line a run has.

/** Show a sentence on what is wrong in the view's alert, or hide it where there is none. */
export function complain(root, text = "") {
  const alert = root.querySelector(".sd-alert");
  alert.textContent = text;
  alert.hidden = !text;
  if (text) alert.scrollIntoView({ block: "nearest" });
}

/** That a run waits, and for how many others. */
export function inLine(place) {
  return `Waiting for its turn: ${place === 1 ? "one run is" : `${place} runs are`} before this one.`;
}
