"""Other engines on the same weights and threads, their tokens timed as they arrive and written down as our records.

`transformers`: plain, assisted generation with the same draft model, prompt lookup. llama.cpp, through
`llama-cpp-python`: plain and its prompt lookup, where the target is a .gguf file, whose weights it keeps as they are.
"""

import importlib
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import islice, pairwise
from time import perf_counter
from typing import Any

from specdec.bench.plan import Way
from specdec.bench.reference import as_transformers
from specdec.bench.shelf import Ids, Peer, Player
from specdec.checkpoints import resolve
from specdec.checkpoints.checkpoint import Checkpoint, open_checkpoint
from specdec.config import SamplingParams
from specdec.errors import MissingExtraError, UnsupportedError
from specdec.model.workers import available_cores
from specdec.records import Round, Token

Arrival = tuple[float, Sequence[int]]  # when, and which tokens came together


def as_rounds(began: float, arrivals: Sequence[Arrival]) -> tuple[Round, ...]:
    """Tokens that arrived together are a round.

    The first pass of such an engine reads the prompt and gives a token at once: of its seconds as many count as
    decoding as a later pass takes, so that tokens per second mean what they mean here.
    """
    times = [began, *(when for when, _ in arrivals)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    usual = min(gaps[0], statistics.median(gaps[1:])) if len(gaps) > 1 else 0.0
    return tuple(
        Round(
            index=index,
            proposals=(),
            tokens=tuple(Token(token, "", "plain") for token in ids),
            text="",
            draft_s=0.0,
            verify_s=gaps[index] if index else usual,
            sample_s=0.0,
            target_cache=0,
            prefill_s=0.0 if index else gaps[0] - usual,
        )
        for index, (_, ids) in enumerate(arrivals)
    )


class Transformers:
    """PyTorch models with the (dequantised) float32 weights of the same checkpoints."""

    def __init__(self, threads: int | None) -> None:
        self._threads = threads or available_cores()
        self._model = cache(_torch_model)

    def player(self, target: str, way: Way) -> Player:
        """Greedy decoding by `generate`. Raises MissingExtraError or UnsupportedError where it cannot be."""
        checkpoint, model = self._model(target)
        options: dict[str, Any] = {}
        if way.draft == "ngram":
            options["prompt_lookup_num_tokens"] = way.k
        elif way.draft != "none":
            options["assistant_model"] = _assistant(self._model(way.draft)[1], way.k)
        import torch

        torch.set_num_threads(self._threads)

        def play(prompt: Ids, params: SamplingParams) -> tuple[Round, ...]:
            ids, clock = torch.tensor([list(prompt)]), _Clock()
            ends = sorted(checkpoint.eos_ids) or None
            model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=params.max_tokens,
                do_sample=False,
                eos_token_id=ends,
                pad_token_id=0,
                streamer=clock,
                **options,
            )
            return as_rounds(clock.began, clock.arrivals)

        return play


class _Clock:
    """A streamer, in the sense of `transformers`, that writes down what arrives when; the prompt comes first."""

    def __init__(self) -> None:
        self.began = perf_counter()
        self.arrivals: list[Arrival] = []
        self._prompt_is_next = True

    def put(self, value: Any) -> None:
        """Ids that are new."""
        if self._prompt_is_next:
            self._prompt_is_next = False
        else:
            self.arrivals.append((perf_counter(), value.flatten().tolist()))

    def end(self) -> None:
        """Nothing more comes."""


def _torch_model(name: str) -> tuple[Checkpoint, Any]:
    checkpoint = open_checkpoint(resolve(name))
    return checkpoint, as_transformers(checkpoint)


def _assistant(model: Any, k: Any) -> Any:
    """A draft that proposes k tokens each time, as ours does, in place of the default's changing number."""
    settings = model.generation_config
    settings.num_assistant_tokens = k
    settings.num_assistant_tokens_schedule = "constant"
    settings.assistant_confidence_threshold = 0.0
    return model


class LlamaCpp:
    """llama.cpp on .gguf files."""

    def __init__(self, threads: int | None) -> None:
        self._threads = threads or available_cores()

    def player(self, target: str, way: Way) -> Player:
        """Greedy decoding token by token. Raises MissingExtraError or UnsupportedError where it cannot be."""
        library = _llama_cpp()
        path = resolve(target)
        if path.suffix != ".gguf":
            raise UnsupportedError(f"llama.cpp reads .gguf files, which {target} is not")
        draft = None
        if way.draft == "ngram":
            draft = importlib.import_module("llama_cpp.llama_speculative").LlamaPromptLookupDecoding(
                num_pred_tokens=way.k
            )
        threads = {"n_threads": self._threads, "n_threads_batch": self._threads}
        model = library.Llama(str(path), n_ctx=0, verbose=False, draft_model=draft, **threads)
        ends = open_checkpoint(path).eos_ids

        def play(prompt: Ids, params: SamplingParams) -> tuple[Round, ...]:
            model.reset()
            began = perf_counter()
            tokens = model.generate(list(prompt), temp=0.0)
            return as_rounds(began, _arrivals(islice(tokens, params.max_tokens), ends))

        return play


PEERS: dict[str, Callable[[int | None], Peer]] = {"transformers": Transformers, "llama.cpp": LlamaCpp}


def _llama_cpp() -> Any:
    try:
        return importlib.import_module("llama_cpp")
    except ImportError as error:
        raise MissingExtraError("llama-cpp-python", "llama") from error


def _arrivals(tokens: Iterable[int], ends: frozenset[int]) -> list[Arrival]:
    arrivals: list[Arrival] = []
    for token in tokens:
        arrivals.append((perf_counter(), [token]))
        if token in ends:
            break
    return arrivals
