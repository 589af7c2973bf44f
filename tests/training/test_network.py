"""The network is Hugging Face's Llama."""

import pytest
import torch

from specdec.training.network import sample
from tests.training.toys import SHAPE, network


def test_logits_equal_hugging_face() -> None:
    """The same weights give `LlamaForCausalLM`'s logits within 1e-5, with grouped queries, over the whole context."""
    transformers = pytest.importorskip("transformers")
    model = network(seed=1).eval()
    reference = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE.hf_config())).eval()
    missing, unexpected = reference.load_state_dict(model.state_dict(), strict=False)
    assert (missing, unexpected) in (([], []), (["lm_head.weight"], []))
    tokens = torch.randint(SHAPE.vocab_size, (3, SHAPE.context), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(model(tokens), reference(tokens).logits, atol=1e-5, rtol=0)


def test_positions_do_not_see_the_future() -> None:
    """Changing a token changes no logits before it."""
    model = network().eval()
    tokens = torch.arange(16)[None]
    changed = tokens.clone()
    changed[0, 10] = 299
    with torch.no_grad():
        before, after = model(tokens)[0], model(changed)[0]
    assert torch.allclose(before[:10], after[:10], atol=1e-6)
    assert not torch.allclose(before[10:], after[10:], atol=1e-6)


def test_sampling_is_seeded_and_ends_with_the_context() -> None:
    """Equal seeds give equal ids, and prompt and answer never exceed the context."""
    model = network()
    first, second = (sample(model, [0, 5], temperature=1.0, seed=7) for _ in range(2))
    assert first == second
    assert 2 + len(first) == SHAPE.context or first[-1] == 0
