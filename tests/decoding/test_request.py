"""What is checked before anything runs, and what a run says of itself."""

import json

import numpy as np
import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.errors import ContextError, RequestError
from specdec.records import Started
from specdec.trace import Trace
from tests.decoding.toys import Toy, ToyCodec, ToyDrafter, hashed

CODEC = ToyCodec(["<s>", "a", "b", " ", "é"], bos=0)


def start(target: Toy, prompt: object, drafter: object = None, **settings: object) -> Started:
    speculation = settings.pop("speculation", SpeculativeConfig())
    first = next(Engine(target, drafter).stream(prompt, SamplingParams(**settings), speculation))  # type: ignore[arg-type]
    assert isinstance(first, Started)
    return first


def test_started_comes_before_the_prefill() -> None:
    """The first record arrives with no forward pass made."""
    target = hashed(1)
    start(target, [1, 2, 3])
    assert target.network.passes == 0


def test_text_and_ids_are_both_prompts() -> None:
    """Text through the tokenizer, with its BOS; ids as they are, NumPy's too."""
    target = hashed(1, vocab=5, tokenizer=CODEC)
    assert start(target, "ab é").prompt_ids == (0, 1, 2, 3, 4)
    assert start(target, np.array([1, 2])).prompt_ids == (1, 2)
    assert start(target, (3,)).prompt_ids == (3,)


def test_an_empty_prompt_is_the_tokenizers_beginning() -> None:
    """ "" and []: BOS where the tokenizer adds one."""
    target = hashed(1, vocab=5, tokenizer=CODEC)
    assert start(target, "").prompt_ids == start(target, []).prompt_ids == (0,)


@pytest.mark.parametrize("tokenizer", [None, ToyCodec(["a", "b"])])
def test_an_empty_prompt_without_a_beginning_is_refused(tokenizer: ToyCodec | None) -> None:
    """No BOS to begin with: a sentence that says what to do."""
    with pytest.raises(RequestError, match=r"prompt is empty.*give at least one token"):
        start(hashed(1, vocab=2, tokenizer=tokenizer), [])


@pytest.mark.parametrize("prompt", [b"bytes", [1.5], ["a"], [None], 7, None])
def test_a_prompt_of_another_kind_is_refused(prompt: object) -> None:
    """Bytes, floats, strings in a list, no sequence: RequestError."""
    with pytest.raises(RequestError, match="prompt must be text or token ids"):
        start(hashed(1), prompt)


@pytest.mark.parametrize("token", [-1, 16, 10**12])
def test_ids_outside_the_vocabulary_are_refused(token: int) -> None:
    """With the id and the range."""
    with pytest.raises(RequestError, match=f"token {token}, toy knows 0 to 15"):
        start(hashed(1), [1, token])


def test_text_without_a_tokenizer_is_refused() -> None:
    """Text prompt, stop string: both need words."""
    with pytest.raises(RequestError, match="toy has no tokenizer: give the prompt as token ids"):
        start(hashed(1), "a")
    with pytest.raises(RequestError, match="stop strings need a tokenizer"):
        start(hashed(1), [1], stop=("a",))


def test_a_bias_on_an_unknown_token_is_refused_before_anything_runs() -> None:
    """logit_bias beyond the vocabulary."""
    with pytest.raises(RequestError, match="token 16"):
        start(hashed(1), [1], logit_bias={16: 1.0})


@pytest.mark.parametrize("length", [8, 9])
def test_a_prompt_that_fills_the_context_is_refused_with_both_numbers(length: int) -> None:
    """As long as the context, or longer."""
    target = hashed(1)
    target.network.context_length = 8
    with pytest.raises(ContextError, match=f"{length} tokens, toy holds 8"):
        start(target, [1] * length)


def test_started_says_what_is_in_force() -> None:
    """Names, seed, rule, lookahead and parameters, all of them JSON values that survive a round trip."""
    params = SamplingParams(temperature=0.5, seed=9, logit_bias={3: 1.5}, stop_token_ids=(4,), max_tokens=5)
    speculation = SpeculativeConfig(num_speculative_tokens=2, acceptance="match")
    trace = Engine(hashed(1), NgramDrafter()).generate([1, 2], params, speculation)
    started = trace.started
    assert (started.target, started.drafter, started.seed, started.note) == ("toy", "ngram", 9, "")
    assert {name: started.settings[name] for name in ("lookahead", "acceptance", "exact", "drafter")} == {
        "lookahead": 2, "acceptance": "match", "exact": True, "drafter": "ngram",
    }  # fmt: skip
    assert started.settings["params"]["logit_bias"] == {"3": 1.5} and started.settings["params"]["max_tokens"] == 5
    assert json.loads(json.dumps(started.settings)) == started.settings
    assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize(
    "exact, bits, said", [(True, True, "bitwise"), (True, False, "near-ties"), (False, True, "off")]
)
def test_exactness_is_what_can_be_kept(exact: bool, bits: bool, said: str) -> None:
    """Asked for and kept; asked for and beyond this machine; not asked for."""
    target = hashed(1)
    target.network.bit_exact = bits
    assert start(target, [1], speculation=SpeculativeConfig(exact=exact)).exactness == said


def test_speculation_that_is_off_says_so() -> None:
    """Asked for without a drafter, lookahead 0, no room, prompt beyond the draft's context: a note each."""
    target, short = hashed(1), hashed(2)
    short.network.context_length = 4
    three = SpeculativeConfig(num_speculative_tokens=3)
    notes = [
        start(target, [1], speculation=three),
        start(target, [1], NgramDrafter(), speculation=SpeculativeConfig(num_speculative_tokens=0)),
        start(target, [1], NgramDrafter(), max_tokens=1),
        start(target, [1] * 5, ModelDrafter(short)),
        start(target, [1] * 4, ModelDrafter(short)),
    ]
    assert [started.drafter for started in notes] == ["none"] * 5
    assert all(started.note.startswith("plain decoding: ") for started in notes)
    assert "no drafter" in notes[0].note and "lookahead of 0" in notes[1].note
    assert "no room for drafts" in notes[2].note and "5 tokens fill toy's context of 4" in notes[3].note


def test_plain_decoding_that_was_asked_for_needs_no_note() -> None:
    """No drafter, nothing said about drafts: no note."""
    assert start(hashed(1), [1]).note == ""
    assert start(hashed(1), [1], speculation=SpeculativeConfig(num_speculative_tokens=0)).note == ""


def test_a_draft_context_shorter_than_the_text_is_announced_and_kept() -> None:
    """Context 10 of the draft, text of 30: a note, drafts up to there, none beyond, no pass past its end."""
    target, draft = hashed(1), hashed(1)
    draft.network.context_length = 10
    draft.network.keep_caches = True
    trace = Engine(target, ModelDrafter(draft, 3)).generate([1, 2], SamplingParams(max_tokens=28))
    assert trace.started.note == "drafts end where the text reaches toy's context of 10 tokens"
    length = 2
    for step in trace.rounds:
        assert length + len(step.proposals) <= 10 or not step.proposals
        assert bool(step.proposals) == (length < 10)
        length += len(step.tokens)
    assert length == 30 and trace.stats.faults == 0 and draft.network.caches[0].longest <= 10


def test_settings_of_the_request_go_before_the_drafters_own() -> None:
    """num_speculative_tokens None takes the drafter's; a number overrides it."""
    target, drafter = hashed(1), ToyDrafter(lambda tokens, k: [1] * k, 5)
    assert len(Engine(target, drafter).generate([1]).rounds[0].proposals) == 5
    two = SpeculativeConfig(num_speculative_tokens=2)
    assert len(Engine(target, drafter).generate([1], speculation=two).rounds[0].proposals) == 2


@pytest.mark.parametrize("settings", [{"logit_bias": {99: 1.0}}, {"stop_token_ids": (99,)}])
def test_parameters_about_unknown_tokens_are_refused(settings: dict[str, object]) -> None:
    """A bias or a stop on a token that the target does not have: an error with both numbers, before anything runs."""
    with pytest.raises(RequestError, match=r"names token 99.*0 to 15"):
        start(hashed(1), [1], **settings)


def test_a_short_answer_is_counted_in_tokens() -> None:
    """The note on why nothing is drafted says what it counts."""
    assert "at most 1 token leaves" in start(hashed(1), [1], NgramDrafter(), max_tokens=1).note
    assert "at most 0 tokens leaves" in start(hashed(1), [1], NgramDrafter(), max_tokens=0).note
