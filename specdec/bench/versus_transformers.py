"""Plain decoding here against plain decoding in PyTorch `transformers`: same weights, same threads, taking turns.

    python -m specdec.bench.versus_transformers --target smollm2-135m-instruct --threads 2

Both sides continue the same ids greedily, one token a pass, with their KV caches; prefill and warm-up are left out.
The figure to quote is the median of the paired ratios: a pair ran within seconds of each other on the same machine.
Beside them stands what memory allows: decoding can go no faster than a token's weights, 4 bytes a parameter, are read.
A second table has the cost of a pass over several tokens in units of a pass over one, also taking turns.
"""

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

from specdec.threads import calm_blas

PROMPT = "A short history of the lighthouse: "
WINDOWS = (1, 2, 3, 5, 9, 13)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print both tables."""
    options = _options(argv)
    calm_blas()
    from specdec.bench.reference import as_transformers
    from specdec.checkpoints.checkpoint import open_checkpoint
    from specdec.checkpoints.locate import resolve
    from specdec.model import Transformer

    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:
        print(f"warning: the machine is busy (load {os.getloadavg()[0]:.1f}): these figures will not hold")
    checkpoint = open_checkpoint(resolve(options.target))
    ours = Transformer(checkpoint.config, checkpoint.weights, threads=options.threads)
    ids = checkpoint.tokenizer.encode(PROMPT) if checkpoint.tokenizer else [1, 2, 3]
    print(f"{options.target}: {checkpoint.config.parameters / 1e6:.0f} M parameters, {options.threads} threads")
    theirs = as_transformers(checkpoint)
    _compare(_OurRun(ours, ids), _TheirRun(theirs, ids, options.threads), options.tokens, options.pairs)
    _bound(checkpoint.config.parameters, options.threads, options.pairs)
    _windows(ours, ids, options.pairs)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m specdec.bench.versus_transformers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--target", default="smollm2-135m-instruct", help="a Llama-architecture model")
    for name, default, text in (
        ("--threads", os.cpu_count() or 1, "of both sides"),
        ("--tokens", 32, "decoded by each side in each pair"),
        ("--pairs", 7, "repetitions of which the median counts"),
    ):
        parser.add_argument(name, type=int, default=default, metavar="N", help=f"{text} (default: {default})")
    options = parser.parse_args(argv)
    if min(options.threads, options.tokens, options.pairs) < 1:
        parser.error("threads, tokens and pairs are at least 1")
    return options


class _OurRun:
    """Greedy decoding with this project's transformer."""

    def __init__(self, model: Any, ids: list[int]) -> None:
        self.model, self.ids = model, ids

    def decode(self, count: int) -> tuple[list[int], float]:
        """The next `count` ids, and tokens per second."""
        cache = self.model.new_cache(len(self.ids) + count + 1)
        self.model.forward(self.ids[:-1], cache, logits=0)
        tokens, started = list(self.ids), time.perf_counter()
        for _ in range(count):
            tokens.append(int(self.model.forward(tokens[cache.length :], cache)[0].argmax()))
        return tokens[len(self.ids) :], count / (time.perf_counter() - started)


class _TheirRun:
    """Greedy decoding with `transformers`, called as its own `generate` calls the model, without its extra work."""

    def __init__(self, model: Any, ids: list[int], threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.model, self.ids, self.torch = model, ids, torch

    def decode(self, count: int) -> tuple[list[int], float]:
        """The next `count` ids, and tokens per second."""
        torch, tokens = self.torch, list(self.ids)
        with torch.inference_mode():
            cache = self.model(torch.tensor([self.ids[:-1]]), use_cache=True).cache
            started = time.perf_counter()
            for _ in range(count):
                output = self.model(torch.tensor([tokens[-1:]]), cache=cache, use_cache=True)
                tokens.append(int(output.logits[0, -1].argmax()))
        return tokens[len(self.ids) :], count / (time.perf_counter() - started)


def _compare(ours: _OurRun, theirs: _TheirRun, count: int, pairs: int) -> None:
    expected, found = theirs.decode(count)[0], ours.decode(count)[0]  # also the warm-up
    speeds = [(ours.decode(count)[1], theirs.decode(count)[1]) for _ in range(pairs)]
    ratios = [a / b for a, b in speeds]
    print(f"same {count} tokens: {'yes' if expected == found else 'NO'}")
    print(f"specdec       {statistics.median(a for a, _ in speeds):8.1f} tokens/s")
    print(f"transformers  {statistics.median(b for _, b in speeds):8.1f} tokens/s")
    print(f"ratio         {statistics.median(ratios):8.2f}   ({min(ratios):.2f} … {max(ratios):.2f}, {pairs} pairs)")


def _bound(parameters: int, threads: int, repetitions: int) -> None:
    """Tokens per second if all that a token cost were to read the weights, once, on so many threads."""
    import numpy as np

    from specdec.model.workers import Workers

    weights = np.ones(parameters, np.float32)
    workers, seconds = Workers(threads), []
    for _ in range(repetitions):
        started = time.perf_counter()
        workers.run(lambda part: weights[part].max(), parameters)
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds)
    print(f"memory bound  {1 / median:8.1f} tokens/s ({weights.nbytes / median / 1e9:.0f} GB/s)")


def _windows(model: Any, ids: list[int], pairs: int) -> None:
    """Cost of a pass over several tokens, exact and not, in units of an exact pass over one."""
    cases = [(rows, True) for rows in WINDOWS] + [(1, False)]
    cache = model.new_cache(len(ids) + max(WINDOWS))
    model.forward(ids, cache, logits=0)
    seconds: dict[tuple[int, bool], list[float]] = {case: [] for case in cases}
    for _ in range(4 * pairs):
        for rows, exact in cases:
            cache.truncate(len(ids))
            seconds[rows, exact].append(_timed_pass(model, cache, rows, exact))
    base = statistics.median(seconds[1, True])
    for (rows, exact), times in seconds.items():
        median = statistics.median(times)
        label = "exact" if exact else "not exact"
        print(f"pass over {rows:2d} ({label:9s}) {median * 1e3:8.2f} ms {median / base:6.2f} x one")


def _timed_pass(model: Any, cache: Any, rows: int, exact: bool) -> float:
    started = time.perf_counter()
    model.forward(list(range(1, rows + 1)), cache, exact=exact)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
