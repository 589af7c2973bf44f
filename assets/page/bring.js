// The tab Models: a line for each known model, a field for others, and how the download under way is going.
//
// The server is asked for all of it when the tab comes into sight, and for the download a few times a second while
// there is one. Names and messages are only ever set through textContent.

const POLL_MS = 300;
const OFF = "Nothing is fetched on this page, because many people share it. Run it on a machine of your own to bring these.";

/** Called once by Gradio's component: `element` holds bring.html, `server` the functions that Python offers. */
export function start(element, props, server, trigger) {
  const view = new BringView(element.querySelector(".br"), server, trigger);
  new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && view.ask("state")).observe(element);
}

class BringView {
  constructor(root, server, trigger) {
    this.root = root;
    this.server = server;
    this.trigger = trigger;
    this.find = (selector) => root.querySelector(selector);
    this.offers = "";
    this.following = false;
    this.find(".br-models").addEventListener("click", ({ target }) => this.press(target.closest("button")));
    this.find("[data-do=cancel]").addEventListener("click", () => this.ask("cancel"));
    this.find("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask("fetch", this.find("#br-name").value.trim());
    });
  }

  press(button) {
    if (button) this.ask("fetch", button.value);
  }

  /** Call one of the server's functions and show its answer; follow the download where there is one. */
  async ask(what, text = "") {
    const answer = await this.server[what](text).catch(() => ({ error: "The server does not answer: try again." }));
    this.find(".br-alert").textContent = answer.error || "";
    this.find(".br-alert").hidden = !answer.error;
    if ("job" in answer) this.job(answer.job);
    if (answer.models) this.models(answer);
  }

  job(job) {
    const running = Boolean(job?.running);
    this.root.dataset.state = job?.phase || "ready";
    this.find(".br-said").textContent = !job ? "" : running ? `${job.name}: ${job.said}` : job.said;
    this.find(".br-job").hidden = !running;
    this.find("progress").value = job?.share || 0;
    for (const button of this.root.querySelectorAll(".br-models button, form button")) button.disabled = running;
    if (running) this.follow();
  }

  /** Ask again in a moment; when the download has ended, for everything. */
  follow() {
    if (this.following) return;
    this.following = true;
    setTimeout(async () => {
      this.following = false;
      await this.ask("progress");
      if (!this.following) await this.ask("state");
    }, POLL_MS);
  }

  models({ models, allowed, offers, job }) {
    this.find(".br-models").replaceChildren(...models.map((model) => this.line(model, allowed, job)));
    this.find("form").hidden = allowed !== "any";
    if (allowed === "off") this.find(".br-said").textContent = OFF;
    const now = offers.join();
    if (now !== this.offers) this.trigger("submit");
    this.offers = now;
  }

  line({ name, facts, use, here, offered, refused }, allowed, job) {
    const line = make("li", { "data-model": name });
    const text = make("div");
    text.append(make("b", {}, name), make("p", {}, facts.join(" · ")), make("p", {}, use));
    if (refused && !here) text.append(make("p", { class: "br-refused" }, refused));
    line.append(text);
    if (offered) line.append(make("span", { class: "br-here" }, "✓ in the lists"));
    else if (allowed !== "off") line.append(this.button(name, here, Boolean(refused && !here) || Boolean(job?.running)));
    return line;
  }

  button(name, here, disabled) {
    const button = make("button", { type: "button", value: name }, here ? "Offer" : "Fetch");
    button.setAttribute("aria-label", `${button.textContent} ${name}`);
    button.disabled = disabled;
    return button;
  }
}

function make(tag, attributes = {}, text = "") {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
}
