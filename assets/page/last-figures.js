// A run's figures as they were at its end: each event tells those that it changed.

/** {figure: its text}, of a run's events; empty where nothing was told. */
export function lastFigures(events) {
  return Object.assign({}, ...events.map(({ figures }) => figures));
}
