"""Distillation pulls a draft towards its target, and the held-out measures are what they say."""

import math

import torch
from torch import Tensor

from specdec.training.losses import Batch, evaluate, training_loss
from specdec.training.network import Llama
from tests.training.toys import SHAPE, network, recipe

TOKENS = torch.randint(SHAPE.vocab_size, (2, 16), generator=torch.Generator().manual_seed(0))
BATCH = (TOKENS, TOKENS.roll(-1, dims=1))


def test_a_model_always_accepts_itself() -> None:
    """With draft = target, expected acceptance and agreement are 1; with another draft the first is below 1."""
    model = network(seed=1)
    itself, other = evaluate(model, model, [BATCH]), evaluate(network(seed=2), model, [BATCH])
    assert itself.acceptance is not None and math.isclose(itself.acceptance, 1, abs_tol=1e-5)
    assert itself.agreement == 1
    assert other.acceptance is not None and other.acceptance < 0.9999


def test_an_untrained_model_knows_nothing() -> None:
    """Before training the held-out loss is within 5 % of ln V, the loss of a uniform guess."""
    assert math.isclose(evaluate(network(), None, [BATCH]).loss, math.log(SHAPE.vocab_size), rel_tol=0.05)


def test_evaluation_leaves_the_mode_alone() -> None:
    """A network in training mode is in training mode after it was measured."""
    model = network().train()
    evaluate(model, None, [BATCH])
    assert model.training


def lesson(teacher: Llama) -> Batch:
    """The batch with all that the teacher says about it."""
    p, ids = torch.softmax(teacher(TOKENS), dim=-1).sort(dim=-1, descending=True)
    return (*BATCH, ids, p.detach())


def test_the_taught_loss_is_least_at_the_teacher() -> None:
    """The teacher's own loss is its entropy, nothing lies apart, and another draft has a higher one."""
    teacher = network(seed=1)
    how = recipe(distill_weight=1.0, overlap_weight=1.0)
    at_teacher = training_loss(teacher, how, lesson(teacher))
    p = torch.softmax(teacher(TOKENS).flatten(0, 1), dim=-1)
    assert torch.isclose(at_teacher, -(p * p.log()).sum(-1).mean(), atol=1e-5)
    assert training_loss(network(seed=2), how, lesson(teacher)) > at_teacher


def test_weights_mix_the_losses() -> None:
    """Weights of w and v give w times the soft loss, 1 - w times the hard one, and v times what lies apart."""
    model, batch = network(seed=2), lesson(network(seed=1))

    def loss(distill: float, overlap: float) -> Tensor:
        return training_loss(model, recipe(distill_weight=distill, overlap_weight=overlap), batch)

    soft, hard, apart = loss(1.0, 0.0), loss(0.0, 0.0), loss(0.0, 1.0) - loss(0.0, 0.0)
    assert torch.isclose(loss(0.25, 2.0), 0.25 * soft + 0.75 * hard + 2 * apart)
    assert torch.isclose(hard, training_loss(model, recipe(), BATCH))
    q, p = (torch.softmax(net(TOKENS), dim=-1) for net in (model, network(seed=1)))
    assert torch.isclose(apart, 1 - torch.minimum(p, q).sum(-1).mean(), atol=1e-5)
