"""Distillation pulls a draft towards its target, and the held-out measures are what they say."""

import math

import torch

from specdec.training.losses import evaluate, training_loss
from tests.training.toys import SHAPE, network

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


def test_soft_loss_is_least_at_the_teacher() -> None:
    """The soft loss of the teacher itself is its entropy, and another draft has a higher one."""
    teacher = network(seed=1)
    at_teacher = training_loss(teacher, teacher, 1.0, BATCH)
    p = torch.softmax(teacher(TOKENS).flatten(0, 1), dim=-1)
    assert torch.isclose(at_teacher, -(p * p.log()).sum(-1).mean(), atol=1e-5)
    assert training_loss(network(seed=2), teacher, 1.0, BATCH) > at_teacher


def test_weight_mixes_the_two_losses() -> None:
    """A weight of w gives w times the soft loss plus 1 - w times the hard one."""
    model, teacher = network(seed=2), network(seed=1)
    soft, hard, mixed = (training_loss(model, teacher, w, BATCH) for w in (1.0, 0.0, 0.25))
    assert torch.isclose(mixed, 0.25 * soft + 0.75 * hard)
    assert torch.isclose(hard, training_loss(model, None, 1.0, BATCH))
