// The two charts: figures come from Python (specdec/ui/charts.py), are drawn once, and then only gain points.

const REDRAW_MS = 400; // drawing costs the same processor that generates: a few times a second is plenty
const CONFIG = {
  displaylogo: false,
  plotlyServerURL: "",
  showSendToCloud: false,
  modeBarButtons: [["toImage"]],
  displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false, // without a mouse it would never go away
};

export class Charts {
  constructor(root, figures) {
    this.figures = figures;
    this.nodes = {};
    this.drawn = {}; // points that each trace of a chart has in the page
    for (const node of root.querySelectorAll(".sd-chart")) this.nodes[node.dataset.chart] = node;
    this.timer = 0;
    this.reset();
    plotly().then(() => this.draw());
    const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => fit(target)));
    for (const node of Object.values(this.nodes)) resized.observe(node);
    new MutationObserver(() => this.recolour()).observe(document.body, { attributeFilter: ["class"] });
  }

  reset() {
    this.rounds = { x: [], y: [] };
    this.running = { x: [], y: [] };
    this.speed = { x: [], y: [] };
    this.draw();
  }

  add(round, [alone, running, tokens, speed]) {
    if (alone !== null) push(this.rounds, round + 1, alone);
    if (running !== null) push(this.running, round + 1, running);
    push(this.speed, tokens, speed);
  }

  /** Show what was added since, now if it is the last of a run, else before long. */
  flush(now) {
    if (now) clearTimeout(this.timer);
    if (now) this.grow();
    else if (!this.timer) this.timer = setTimeout(() => this.grow(), REDRAW_MS);
  }

  grow() {
    this.timer = 0;
    if (!window.Plotly) return;
    this.extend("acceptance", [this.rounds, this.running]);
    this.extend("speed", [this.speed]);
  }

  extend(name, series) {
    const from = this.drawn[name];
    const traces = series.map((_, index) => index).filter((index) => series[index].x.length > from[index]);
    if (!traces.length) return;
    const fresh = (axis) => traces.map((index) => series[index][axis].slice(from[index]));
    window.Plotly.extendTraces(this.nodes[name], { x: fresh("x"), y: fresh("y") }, traces);
    this.drawn[name] = series.map(({ x }) => x.length);
  }

  /** Everything anew, in the colours of the page's theme; the nodes stay the same. */
  draw() {
    if (!window.Plotly) return;
    this.painted = theme();
    this.react("acceptance", [this.rounds, this.running]);
    this.react("speed", [this.speed]);
  }

  react(name, series) {
    const { data, layout } = this.figures[this.painted][name];
    const traces = data.map((trace, index) => ({ ...trace, x: [...series[index].x], y: [...series[index].y] }));
    window.Plotly.react(this.nodes[name], traces, structuredClone(layout), CONFIG);
    this.drawn[name] = series.map(({ x }) => x.length);
  }

  recolour() {
    if (theme() !== this.painted) this.draw();
  }
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
