// The settings that the Share tab hands on: where they have no seed, with that of the last run.

/** `settings` in the order of the page's controls, the seed at `place`; a file's run may have a seed that none can be. */
export function seeded(settings, place) {
  const seed = window.specdecRun?.events.find(({ event }) => event === "start")?.seed;
  if (!Number.isSafeInteger(seed) || seed < 0) return settings;
  return settings.map((value, index) => (index === place && (value ?? "") === "" ? seed : value));
}
