// What-if sliders: theory's speed-up for any α, c and cost of a further token, the best k in a sentence.

import { speedUp } from "./theory.js";

export class WhatIf {
  /** `most`: the largest k; `show`: takes the curve, {x: k, y: speed-up}, each time that it changes. */
  constructor(root, most, show) {
    this.root = root;
    this.most = most;
    this.show = show;
    this.says = root.querySelector(".sd-whatif-says");
    this.button = root.querySelector("button");
    root.addEventListener("input", () => this.tell());
    this.button.addEventListener("click", () => this.reset());
    this.tell();
  }

  /** Begin from what was measured: {alpha, c, row}. */
  start(letters) {
    this.letters = letters;
    this.button.hidden = false;
    this.reset();
  }

  reset() {
    for (const input of this.inputs()) input.value = this.letters[input.name];
    this.tell();
  }

  tell() {
    const { alpha, c, row } = this.values();
    for (const input of this.inputs()) input.previousElementSibling.textContent = Number(input.value).toFixed(2);
    const x = Array.from({ length: this.most + 1 }, (_, k) => k);
    const y = x.map((k) => speedUp(alpha, k, c, 1 + row * k));
    const best = y.indexOf(Math.max(...y));
    const given = `With α = ${alpha.toFixed(2)}, c = ${c.toFixed(2)} and r = ${row.toFixed(2)}`;
    this.says.textContent = best
      ? `${given} the best k would be ${best}${best === this.most ? ", the most there is" : ""}: ${y[best].toFixed(2)}\u00a0×.`
      : `${given} no k would pay: plain decoding would be fastest.`;
    this.show({ x, y });
  }

  inputs() {
    return this.root.querySelectorAll("input");
  }

  values() {
    return Object.fromEntries([...this.inputs()].map((input) => [input.name, Number(input.value)]));
  }
}
