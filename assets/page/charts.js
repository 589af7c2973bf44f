// Charts: figures come from Python (specdec/ui/charts.py), are drawn once, and then only gain points.

const REDRAW_MS = 400; // drawing costs the same processor that generates: a few times a second is plenty
const REST = 5; // times as long as the last drawing took is waited at least, however long a run gets
const MOUSE = matchMedia("(hover: hover)").matches;
const CONFIG = {
  displaylogo: false,
  plotlyServerURL: "",
  showSendToCloud: false,
  modeBarButtons: [["resetScale2d", "toImage"]],
  displayModeBar: MOUSE ? "hover" : false, // without a mouse it would never go away
};

/** What charts have in common; `plots()` says what each shows: {name: a series for each trace}. */
export class Charts {
  constructor(root, figures) {
    this.figures = figures;
    this.nodes = {};
    this.drawn = {}; // points that each trace of a chart has in the page
    for (const node of root.querySelectorAll(".sd-chart")) this.nodes[node.dataset.chart] = node;
    this.timer = 0;
    this.pause = REDRAW_MS;
    this.reset();
    plotly().then(() => this.draw());
    this.observe(Object.values(this.nodes));
  }

  observe(nodes) {
    const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => fit(target)));
    const sighted = new IntersectionObserver((entries) => entries.forEach(look));
    for (const node of nodes) {
      resized.observe(node);
      sighted.observe(node);
      node.addEventListener("pointerdown", () => (this.held = true));
    }
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => (this.held = false));
    new MutationObserver(() => this.recolour()).observe(document.body, { attributeFilter: ["class"] });
  }

  /** A new run: nothing of the last one's view is kept. */
  reset() {
    this.view = (this.view || 0) + 1;
    this.draw();
  }

  /** Show what was added since, now if it is the last of a run, else before long. */
  flush(now) {
    if (now) clearTimeout(this.timer);
    if (now) this.grow(true);
    else if (!this.timer) this.timer = setTimeout(() => this.grow(false), this.pause);
  }

  /** Charts out of sight wait for the end of the run; all of them wait for whoever is dragging a box in one. */
  grow(all) {
    this.timer = this.held && MOUSE ? setTimeout(() => this.grow(all), REDRAW_MS) : 0;
    if (this.timer || !window.Plotly) return;
    const began = performance.now();
    for (const [name, series] of Object.entries(this.plots())) {
      if (all || this.nodes[name].dataset.sight) this.extend(name, series);
    }
    const drawn = () => (this.pause = Math.max(REDRAW_MS, REST * (performance.now() - began)));
    requestAnimationFrame(() => setTimeout(drawn)); // with the painting
  }

  extend(name, series) {
    const from = this.drawn[name];
    const traces = series.map((_, index) => index).filter((index) => series[index].x.length > from[index]);
    if (!traces.length) return;
    const axes = Object.keys(series[0]);
    const fresh = (axis) => traces.map((index) => series[index][axis].slice(from[index]));
    const points = Object.fromEntries(axes.map((axis) => [axis, fresh(axis)]));
    window.Plotly.extendTraces(this.nodes[name], points, traces);
    this.drawn[name] = series.map(({ x }) => x.length);
  }

  /** Everything anew, in the colours of the page's theme; the nodes stay the same. */
  draw() {
    if (!window.Plotly) return;
    this.painted = theme();
    for (const [name, series] of Object.entries(this.plots())) this.react(name, series);
  }

  react(name, series) {
    const { data, layout } = structuredClone(this.figures[this.painted][name]);
    const traces = data.map((trace, index) => ({ ...trace, ...copied(series[index]) }));
    if (this.view) layout.uirevision = `run ${this.view}`; // as long as it is the same, a zoom stays
    if (!MOUSE) for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true; // a finger scrolls the page
    window.Plotly.react(this.nodes[name], traces, layout, CONFIG);
    this.drawn[name] = series.map(({ x }) => x.length);
  }

  recolour() {
    if (theme() !== this.painted) this.draw();
  }
}

function copied(series) {
  return Object.fromEntries(Object.entries(series).map(([axis, values]) => [axis, [...values]]));
}

function look({ target, isIntersecting }) {
  if (isIntersecting) target.dataset.sight = "yes";
  else delete target.dataset.sight;
}

function fit(node) {
  if (node.querySelector(".main-svg")) window.Plotly.Plots.resize(node);
}

export function theme() {
  return document.querySelector(".dark") ? "dark" : "light";
}

export function push(series, x, y) {
  series.x.push(x);
  series.y.push(y);
}

/** plotly.js from this server, once, after the page itself is there. */
function plotly() {
  if (window.Plotly) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("plotly.min.js", import.meta.url);
    script.addEventListener("load", resolve);
    script.addEventListener("error", reject);
    document.head.append(script);
  });
}
