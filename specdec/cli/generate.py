"""`generate`: a run to the terminal as it happens, or to one JSON object when it is over."""

import argparse
import json
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET, load_model
from specdec.checkpoints.memory import peak_bytes
from specdec.cli.interrupts import Interrupts
from specdec.cli.progress import ProgressLine
from specdec.cli.terminal import Painter, Style, figures, in_force, printable, styled, wants_colour
from specdec.config import LIMITS
from specdec.decoding.protocols import Model
from specdec.errors import RequestError, VocabularyError
from specdec.records import Finished, Record, Round, Started
from specdec.serving import GenerationRequest, Service, Settings
from specdec.stats import Stats
from specdec.trace import Trace

MAX_PROMPT_BYTES = 10_000_000
MAX_SECONDS = 86_400.0
MAX_ECHO = 400


def generate(options: argparse.Namespace, interrupts: Interrupts) -> None:
    """Run the command; SpecdecError or OSError where it cannot be done, KeyboardInterrupt after a Ctrl-C."""
    prompt = read_prompt(options.prompt, options.prompt_file)
    began = time.perf_counter()
    with closing(start(open_service(options.threads), options, prompt)) as run:
        records = interrupts.between(run)
        if options.json:
            print_trace(records, began)
        else:
            show(records, "" if options.chat else prompt)


def read_prompt(text: str | None, file: str | None) -> str:
    """The prompt from its option, a file, or standard input; one line end at the end of those two is dropped."""
    if file is None and text is not None and text != "-":
        return _valid(text)
    if file is None and sys.stdin is None:
        raise RequestError("there is no standard input to read the prompt from")
    if file is None:
        data = sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1)
    else:
        with Path(file).open("rb") as stream:
            data = stream.read(MAX_PROMPT_BYTES + 1)
    if len(data) > MAX_PROMPT_BYTES:
        raise RequestError(f"the prompt is longer than {MAX_PROMPT_BYTES:,} bytes")
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise RequestError(f"the prompt is not UTF-8: {error.reason} at byte {error.start}") from error


def _valid(text: str) -> str:
    """A prompt from the arguments, where bytes that are not UTF-8 come as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RequestError(f"the prompt is not UTF-8: {error.reason} at character {error.start}") from error
    return text


def open_service(threads: int | None) -> Service:
    """A service for one user: no limit but the engine's own, and progress shown while models load."""
    settings = Settings(
        max_new_tokens=LIMITS.max_new_tokens,
        max_prompt_characters=MAX_PROMPT_BYTES,
        max_seconds=MAX_SECONDS,
        threads=threads or 0,
    )
    return Service(settings, partial(_load, threads))


def _load(threads: int | None, name: str) -> Model:
    with ProgressLine(sys.stderr) as line:
        return load_model(name, threads=threads, progress=line.show)


def start(service: Service, options: argparse.Namespace, prompt: str) -> Generator[Record, None, None]:
    """The run that the options ask for. The default draft gives way to n-grams where the target cannot use it."""
    request = GenerationRequest(
        prompt=prompt,
        target=options.target or DEFAULT_TARGET,
        draft=options.draft or DEFAULT_DRAFT,
        chat=options.chat,
        params=options.params,
        speculation=options.speculation,
    )
    try:
        yield from service.stream(request)
    except VocabularyError:
        if options.draft is not None:
            raise
        note = f"{DEFAULT_DRAFT} does not have the vocabulary of {request.target}: drafting with ngram"
        yield from _noted(service.stream(replace(request, draft="ngram")), note)


def _noted(records: Iterator[Record], note: str) -> Iterator[Record]:
    for record in records:
        if isinstance(record, Started):
            yield replace(record, note="; ".join(filter(None, (note, record.note))))
        else:
            yield record


def print_trace(records: Iterator[Record], began: float) -> None:
    """One JSON object in ASCII, which is safe for any terminal and any encoding."""
    kept = list(records)
    measured = {"wall_s": time.perf_counter() - began} | _peak_memory()
    print(json.dumps(Trace.collect(kept, measured).to_dict()))


def _peak_memory() -> dict[str, float]:
    """Most memory this process has held, in units of 10⁶ bytes; nothing where the system does not tell."""
    peak = peak_bytes()
    return {} if peak is None else {"peak_rss_mb": peak / 1e6}


def show(records: Iterator[Record], prompt: str) -> None:
    """Write the text as it comes, then the figures to standard error. In colour the prompt's end goes before it."""
    painter = Painter() if wants_colour(sys.stdout) else None
    kept: list[Record] = []
    for record in records:
        if painter is not None and not kept:
            _write(styled(prompt[-MAX_ECHO:], "faint"))
        kept.append(record)
        _write(_shown(record, painter))
    if sys.stdout.isatty():
        _write("\n")
    elif sys.stderr.isatty():  # the text may stand on the same screen, and ends where it ends
        print(file=sys.stderr)
    _close(kept, wants_colour(sys.stderr))


def _shown(record: Record, painter: Painter | None) -> str:
    """What standard output gets: the text itself, made safe and coloured where it is a terminal."""
    if isinstance(record, Started):
        return ""
    if painter is not None:
        return painter.round(record) if isinstance(record, Round) else painter.tail(record)
    text = record.text if isinstance(record, Round) else record.tail
    return printable(text) if sys.stdout.isatty() else text


def _write(text: str) -> None:
    """Write now."""
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def _close(kept: list[Record], colour: bool) -> None:
    """Figures, and what was really in force, on standard error."""
    started, finished = kept[0], kept[-1]
    lines = [figures(Stats.of(kept), finished.reason)] if isinstance(finished, Finished) else []
    lines += [in_force(started)] if isinstance(started, Started) else []
    style: Style = "faint" if colour else "plain"
    print(*(styled(line, style) for line in lines), sep="\n", file=sys.stderr)
