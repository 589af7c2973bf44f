// How large target and draft are, as two bars of one scale and a sentence that says the same.

/** Called once by Gradio's component: `element` holds sizes.html, `props.value` what `models.sizes` wrote. */
export function start(element, props, watch) {
  function draw() {
    const { target, draft, labels, said } = JSON.parse(props.value);
    const most = Math.max(target, draft, 1);
    for (const [name, count] of Object.entries({ target, draft })) {
      const bar = element.querySelector(`[data-bar="${name}"]`);
      bar.style.width = `${(100 * count) / most}%`;
      bar.hidden = !count;
      element.querySelector(`[data-count="${name}"]`).textContent = labels[name];
    }
    element.querySelector("p").textContent = said;
  }

  watch("value", draw);
  draw();
}
