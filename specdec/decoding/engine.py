"""The round loop: draft, verify, commit, and say what happened. Plain decoding is the same loop without drafts.

k drafts, V vocabulary. One cache rule in place of all rewind arithmetic: a model is fed `tokens[cache.length:]`, and
after a round each cache is cut to `len(tokens) - 1`, a no-op where it is shorter.
"""

from collections.abc import Generator, Sequence
from functools import cache
from time import perf_counter

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import rounds
from specdec.decoding.drafting import Drafting, Drafts
from specdec.decoding.lookahead import Timings, policy_for
from specdec.decoding.processors import Processors
from specdec.decoding.protocols import COLD, Drafter, Floats, Model, Reader
from specdec.decoding.randomness import Purpose, Uniforms
from specdec.decoding.request import Request, prepare
from specdec.decoding.sampling import log_probabilities
from specdec.decoding.stopping import Cut, Stopping
from specdec.decoding.tops import Tops
from specdec.decoding.verification import RULES, Verdict, greedy
from specdec.records import Finished, FinishReason, Record, Round
from specdec.trace import Trace


class Engine:
    """A target and, where there is one, a drafter. Between requests it remembers how long passes take, and no more.

    Engines of the same two may share these `timings`.
    """

    def __init__(self, target: Model, drafter: Drafter | None = None, timings: Timings | None = None) -> None:
        self.target = target
        self.drafter = drafter
        self._timings = timings or Timings()

    def stream(
        self,
        prompt: str | Sequence[int],
        params: SamplingParams = SamplingParams(),  # noqa: B008 (frozen)
        speculation: SpeculativeConfig = SpeculativeConfig(),  # noqa: B008 (frozen)
        reader: Reader = COLD,
    ) -> Generator[Record, None, None]:
        """Generate: `Started`, a `Round` for each pass of the target, `Finished`. Close it to stop.

        Both models take in the prompt by `reader`: one that remembers makes the first token come sooner, and no other.
        Raises at the first pull RequestError (ContextError where the prompt fills the context) or VocabularyError,
        later NumericalError where the target returns NaN. A drafter that fails costs its drafts only.
        """
        request = prepare(self.target, self.drafter, prompt, params, speculation)
        run = Run(self.target, request, self._timings, reader)
        yield request.started
        while run.reason is None:
            yield run.round()
        yield run.finish()

    def generate(
        self,
        prompt: str | Sequence[int],
        params: SamplingParams = SamplingParams(),  # noqa: B008 (frozen)
        speculation: SpeculativeConfig = SpeculativeConfig(),  # noqa: B008 (frozen)
    ) -> Trace:
        """Generate to the end; errors as in `stream`."""
        return Trace.collect(self.stream(prompt, params, speculation))


class Run:
    """One request at work. `tokens` is the prompt and all that was emitted, `reason` why it is over, once it is."""

    def __init__(self, target: Model, request: Request, timings: Timings, reader: Reader) -> None:
        codec, vocab_size = target.tokenizer, target.network.vocab_size
        self.tokens = list(request.prompt)
        self.reason: FinishReason | None = None if request.budget else request.limit
        self._request = request
        self._reader = reader
        self._network = target.network
        self._cache = target.network.new_cache(len(request.prompt) + request.budget)
        self._drafting = Drafting(request.session, vocab_size)
        self._policy = policy_for(request.lookahead, timings)
        self._processors = Processors(request.params, request.prompt, vocab_size)
        self._uniforms = Uniforms(request.seed)
        self._stopping = Stopping(request.params, target.eos_ids, codec, request.budget, request.limit)
        self._piece = _no_text if codec is None else cache(codec.piece)
        self._index = 0

    def round(self) -> Round:
        """Draft, verify, judge, cut, commit; then write it down."""
        clock = Stopwatch()
        cached = self._prefill()
        prefill_s = clock.lap() if self._index == 0 else 0.0
        caught_up = self._caught_up()
        drafts = self._drafting.propose(self.tokens, self._policy.choose(self._room()))
        draft_s = clock.lap()
        logits = self._verify(drafts.tokens)  # (k + 1, V)
        verify_s = clock.lap()
        verdict, p = self._judge(logits, drafts)
        cut = self._stopping.cut((*drafts.tokens[: verdict.accepted], verdict.token))
        self._commit(cut)
        logprobs = log_probabilities(logits, cut.ids) if self._request.params.logprobs else None
        tops = self._tops(p, logits, drafts)
        step = Round(
            index=self._index,
            proposals=rounds.proposals(drafts, verdict, len(cut.ids), tops, self._piece),
            tokens=rounds.tokens(cut.ids, verdict, logprobs, tops, self._piece),
            text=cut.text,
            draft_s=draft_s,
            verify_s=verify_s,
            sample_s=clock.lap(),
            target_cache=self._cache.length,
            draft_cache=self._drafting.cache_length,
            prefill_s=prefill_s,
            cached_tokens=cached,
            fault=self._drafting.end_round(),
            last=self.reason is not None,
        )
        self._index += 1
        self._policy.observe(step, caught_up=caught_up)
        return step

    def finish(self) -> Finished:
        """The last record, once `reason` is known."""
        tail = self._stopping.tail()
        ids = tuple(self.tokens[len(self._request.prompt) :])
        return Finished(self.reason or self._request.limit, ids, self._stopping.text, tail)

    def _prefill(self) -> int:
        """Before the first round: read all of the prompt but its last token, which the round will feed.

        Returns how many of these the target's reader had at hand.
        """
        if self._index:
            return 0
        cached, unfed = 0, self.tokens[:-1]
        if unfed:
            cached = self._reader.read(self._network, unfed, self._cache, exact=self._request.speculation.exact)
        self._drafting.prefill(self.tokens, self._reader)
        return cached

    def _room(self) -> int:
        """How many drafts may follow: one token is the target's own, and the draft's context may be shorter."""
        return max(0, min(self._stopping.left - 1, self._drafting.room(len(self.tokens))))

    def _caught_up(self) -> bool:
        held = self._drafting.cache_length
        return held is None or len(self.tokens) - held <= 2

    def _verify(self, drafts: tuple[int, ...]) -> Floats:
        """The target's logits behind the text and behind each draft, (k + 1, V)."""
        feed = (*self.tokens[self._cache.length :], *drafts)
        exact = self._request.speculation.exact
        return self._network.forward(feed, self._cache, logits=len(drafts) + 1, exact=exact)

    def _judge(self, logits: Floats, drafts: Drafts) -> tuple[Verdict, Floats | None]:
        """The acceptance rule, on the user's probabilities, with the uniforms of these positions.

        With the verdict come these probabilities, (k + 1, V), which greedy does not make.
        """
        k, start = len(drafts.tokens), len(self.tokens)
        judge = self._uniforms.window(Purpose.JUDGE, start, k)
        self._processors.follow(self.tokens)
        if self._request.params.greedy:
            return greedy(self._processors.choices(logits, drafts.tokens).tolist(), drafts.tokens, judge), None
        p = self._processors.probabilities(logits, drafts.tokens)  # (k + 1, V)
        choose = self._uniforms.window(Purpose.CHOOSE, start, k + 1)
        return RULES[self._request.speculation.acceptance](p, drafts.tokens, drafts.q, judge, choose), p

    def _tops(self, p: Floats | None, logits: Floats, drafts: Drafts) -> Tops:
        """What this round's records tell of its distributions."""
        speculation = self._request.speculation
        if speculation.top == 0:
            return Tops(None, drafts, False, 0, self._piece)
        residual = p is not None and speculation.acceptance == "rejection"
        rows = self._processors.beliefs(logits, drafts.tokens) if p is None else p
        return Tops(rows, drafts, residual, speculation.top, self._piece)

    def _commit(self, cut: Cut) -> None:
        """Make the round's tokens part of the text and cut both caches to it."""
        self.tokens += cut.ids
        self.reason = cut.reason
        self._cache.truncate(len(self.tokens) - 1)
        self._drafting.truncate(len(self.tokens) - 1)


class Stopwatch:
    """Seconds of engine time between laps."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap, or since the start."""
        before, self._last = self._last, perf_counter()
        return self._last - before


def _no_text(token: int) -> str:
    return ""
