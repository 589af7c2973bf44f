"""A run that may be cut short: by a flag that somebody sets, or by its deadline."""

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace

from specdec.decoding.protocols import Codec
from specdec.records import Finished, FinishReason, Record, Round, Started

Cancelled = Callable[[], bool]
Records = Generator[Record, None, None]


def within(run: Records, prompt: str, codec: Codec | None, cancelled: Cancelled, seconds: float) -> Records:
    """The run's records, cut before the next round once it is cancelled or its time is up."""
    ends = time.monotonic() + seconds
    said: list[Round] = []
    with closing(run):
        for record in run:
            yield _announced(record, prompt, seconds) if isinstance(record, Started) else record
            if isinstance(record, Finished):
                return
            if isinstance(record, Round):
                said.append(record)
                if record.last:
                    continue  # a run's own end comes before whatever would end it
            if cancelled():
                yield _cut(said, codec, "cancelled")
                return
            if time.monotonic() > ends:
                yield _cut(said, codec, "length")
                return


def _announced(started: Started, prompt: str, seconds: float) -> Started:
    """What is in force, with the prompt as it was typed and the deadline: a run that this cuts ends at "length"."""
    return replace(started, settings={**started.settings, "prompt": prompt, "max_seconds": seconds})


def _cut(said: Iterable[Round], codec: Codec | None, reason: FinishReason) -> Finished:
    """The last record of a run that ends here; text that its rounds held back is its tail."""
    rounds = tuple(said)
    ids = tuple(token.id for step in rounds for token in step.tokens)
    text = "".join(step.text for step in rounds)
    whole = _decoded(codec, ids) if codec else text
    tail = whole[len(text) :] if whole.startswith(text) else ""
    return Finished(reason, ids, text + tail, tail)


def _decoded(codec: Codec, ids: tuple[int, ...]) -> str:
    decoder = codec.decoder()
    return "".join(map(decoder.push, ids)) + decoder.flush()
