"""A smaller model that drafts for a bigger one (Leviathan et al. 2023).

k drafts, V target's vocabulary. One rule keeps its cache right: the model is fed `tokens[cache.length:]`. After a full
acceptance that is two tokens, after rounds without drafts more, and never a special case.
"""

from collections.abc import Sequence

import numpy as np

from specdec.config import Lookahead, SamplingParams, require_lookahead
from specdec.decoding.drafters.draft import Drafted
from specdec.decoding.drafters.vocabulary import fit, require_shared
from specdec.decoding.processors import Processors
from specdec.decoding.protocols import COLD, Floats, Model, Reader
from specdec.decoding.randomness import Purpose, Uniforms
from specdec.decoding.sampling import draw


class ModelDrafter:
    """Drafts with `model`, whose tokenizer must be the target's. Holds no state of any request."""

    def __init__(self, model: Model, num_speculative_tokens: Lookahead = 3) -> None:
        require_lookahead(num_speculative_tokens)
        self.model = model
        self.num_speculative_tokens = num_speculative_tokens

    @property
    def name(self) -> str:
        """The draft model's name."""
        return self.model.name

    def start(self, target: Model, params: SamplingParams, seed: int, capacity: int) -> "ModelDraftSession":
        """Begin a request of at most `capacity` tokens; VocabularyError where the two models do not share tokens."""
        require_shared(target, self.model)
        return ModelDraftSession(self.model, params, seed, capacity, target.network.vocab_size)


class ModelDraftSession:
    """The draft model's cache, its processors and its uniforms, for one request."""

    def __init__(self, model: Model, params: SamplingParams, seed: int, capacity: int, vocab_size: int) -> None:
        self._network = model.network
        self._params = params
        self._vocab_size = vocab_size
        self._uniforms = Uniforms(seed)
        self._cache = model.network.new_cache(min(capacity, model.network.context_length))
        self._processors: Processors | None = None

    @property
    def cache_length(self) -> int:
        """Tokens in the draft's cache."""
        return self._cache.length

    @property
    def context_length(self) -> int:
        """Longest text, drafts included, that the draft model can hold."""
        return self._network.context_length

    def prefill(self, prompt: Sequence[int], reader: Reader = COLD) -> None:
        """Read all of the prompt but its last token."""
        self._processors = Processors(self._params, prompt, self._vocab_size)
        unread = prompt[self._cache.length : -1]
        if unread:
            reader.read(self._network, self._known(unread), self._cache, exact=False)

    def propose(self, tokens: Sequence[int], k: int) -> Drafted:
        """Draft `k` tokens, one forward pass each; the last one is not fed."""
        if self._processors is None:
            self._processors = Processors(self._params, tokens, self._vocab_size)
        self._processors.follow(tokens)
        greedy = self._params.greedy
        drafts: list[int] = []
        q: Floats | None = None
        feed = tokens[self._cache.length :]
        for i in range(k):
            logits = self._feed(feed, logits=1)  # (1, V)
            if greedy:
                token = self._processors.choices(logits, drafts).item(0)
            else:
                row = self._processors.probabilities(logits, drafts)
                q = np.empty((k, row.shape[1]), row.dtype) if q is None else q
                q[i] = row[0]
                token = draw(q[i], self._uniforms.at(Purpose.DRAFT, len(tokens) + i))
            drafts.append(token)
            feed = (token,)
        return Drafted(tuple(drafts), q)

    def truncate(self, length: int) -> None:
        """Forget all behind `length`; no-op where the cache is shorter."""
        self._cache.truncate(length)

    def _feed(self, tokens: Sequence[int], logits: int) -> Floats:
        """One forward pass."""
        rows = self._network.forward(self._known(tokens), self._cache, logits=logits, exact=False)
        return rows if self._network.vocab_size == self._vocab_size else fit(rows, self._vocab_size)

    def _known(self, tokens: Sequence[int]) -> Sequence[int]:
        """The tokens as they are fed; ids that the draft's table lacks are read as its last one."""
        size = self._network.vocab_size
        return tokens if size >= self._vocab_size else [min(token, size - 1) for token in tokens]
