"""What a service does as metrics and spans, with OpenTelemetry: the records of its runs, folded once more.

Read in this order: `names.py` (all names, in one place), `metrics.py` and `spans.py` (a run as numbers and as a tree of
times), `watching.py` (both, for whoever has records), `providers.py` (where they go: Prometheus text, OTLP). Nothing
here is imported unless telemetry is switched on. No prompt and no generated text is in any of it.
"""
