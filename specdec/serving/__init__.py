"""The one door to an engine: admission, limits, deadline, cancellation, and the models that are kept.

Read in this order: `../settings.py`, `gate.py` (who is next), `store.py` and `catalogue.py` (which models are kept,
which are on offer), `bringing.py` (how more of them arrive), `breaker.py`, `helper.py`, `guard.py` and `speculation.py`
(a drafter kept at arm's length), `service.py` and `cutting.py` (a request from the door to its last record),
`losslessness.py` (a promise put to the test). No network here.
"""

from specdec.serving.breaker import Condition
from specdec.serving.bringing import Bringing, Job
from specdec.serving.catalogue import Offer, catalogue, drafts_for, targets
from specdec.serving.gate import Gate, Ticket
from specdec.serving.losslessness import Examination, Finding, Verdict
from specdec.serving.service import GenerationRequest, Service
from specdec.serving.speculation import Drafting
from specdec.serving.store import ModelStore
from specdec.settings import Settings

__all__ = [
    "Bringing",
    "Condition",
    "Drafting",
    "Examination",
    "Finding",
    "Gate",
    "GenerationRequest",
    "Job",
    "ModelStore",
    "Offer",
    "Service",
    "Settings",
    "Ticket",
    "Verdict",
    "catalogue",
    "drafts_for",
    "targets",
]
