// A sentence below the prompt, on what an example needs; nothing where it needs nothing.

/** Called once by Gradio's component: `element` holds note.html, `props.value` the sentence. */
export function start(element, props, watch) {
  const said = element.querySelector("p");

  function say() {
    said.textContent = props.value || "";
  }

  watch("value", say);
  say();
}
