"""The page: a Gradio app in which speculative decoding can be watched.

Read in this order: `view.py` (records to what the page draws), `traces.py` (runs as files), `charts.py` (its charts),
`baseline.py`, `meter.py` and `watch.py` (a run as the page follows it), `measure.py`, `race.py` and `verdict.py` (two
runs), `step.py` (one round at a time), `sweep.py`, `findings.py`, `explore_charts.py` and `explore.py` (many runs
beside theory), `honest.py` and `guide.py` (the badge, the guided start), `models.py`, `examples.py` and `controls.py`
(what is asked), `bring.py` (models that are fetched), `api.py` (a run for programs), `page.py` (the Blocks),
`handlers.py` (its buttons), `server.py` and `launch.py` (the web application around it). What the browser does with
it is in `assets/page/`.
"""

import os

# Read by Gradio and the Hub's client when they are imported, so before anything in here imports them.
os.environ.update(
    GRADIO_ANALYTICS_ENABLED="False",
    GRADIO_RUN_HISTORY="False",
    GRADIO_SSR_MODE="false",
    HF_HUB_DISABLE_TELEMETRY="1",
)
