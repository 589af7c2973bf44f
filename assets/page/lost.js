// Whether the server is still there while a run says nothing. Gradio tells of one that has gone in a corner of the page,
// and only if the connection was seen to break; the run would be shown as going on for ever.

const SILENCE_MS = 3000; // without an event of a run that goes on, until the server is asked
const PATIENCE_MS = 10_000; // for its answer: a busy machine may be slow, a cut cable says nothing
const ENDS = new Set(["end", "error", "stopped", "verdict", "found"]);
const LOST = {
  event: "error",
  text: "The connection to the server was lost, and this run with it.",
  hint: "What came of it stays here; once the server is back, load the page anew.",
};

/** Watches over a view's runs: returns what is to be told of their events; `lose` gets one more if the server is gone. */
export function watchOver(lose) {
  let timer = 0;
  let heard = 0;

  async function ask() {
    const before = heard;
    const lost = await gone();
    if (before !== heard) return; // something was said meanwhile
    if (lost) lose(LOST);
    else timer = setTimeout(ask, SILENCE_MS);
  }

  return (events) => {
    if (!events.length) return;
    heard += 1;
    clearTimeout(timer);
    if (!ENDS.has(events.at(-1).event)) timer = setTimeout(ask, SILENCE_MS);
  };
}

/** Whether no server answers, or one that was started since and knows nothing of this page. */
async function gone() {
  const { app_id: own, api_prefix: prefix } = window.gradio_config;
  try {
    const answer = await fetch(new URL(`.${prefix}/app_id`, document.baseURI), { signal: AbortSignal.timeout(PATIENCE_MS) });
    return answer.status >= 500 || (answer.ok && (await answer.json()).app_id !== own); // a proxy answers for it
  } catch {
    return true;
  }
}
