"""What is minimised, and what is measured on held-out text.

A draft is accepted with probability Σ min(p, q) per token (Leviathan et al. 2023, arXiv:2211.17192), and KL(p ‖ q)
bounds 1 minus that (Pinsker), so a draft learns its target's whole distribution rather than the text alone, and the
overlap itself beside it (Zhou et al. 2023, DistillSpec, arXiv:2310.08461; Hinton et al. 2015).

Shape letters: N tokens, V vocabulary, K tokens of a lesson. p target (teacher), q draft (student).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - PyTorch's own custom

from specdec.training.network import Llama
from specdec.training.settings import Recipe

Batch = tuple[Tensor, ...]  # inputs and next tokens, (B, T) each; with lessons also ids and p of the top K, (B, T, K)


def flat_logits(network: Llama, tokens: Tensor) -> Tensor:
    """[B, T] ids -> [N, V] logits in float32."""
    logits: Tensor = network(tokens)
    return logits.flatten(0, 1).float()


def training_loss(network: Llama, recipe: Recipe, batch: Batch) -> Tensor:
    """Mean nats a token: cross-entropy with the text; with lessons mixed with what `taught_loss` says."""
    tokens, targets, *lesson = batch
    logits = flat_logits(network, tokens)  # (N, V)
    hard = F.cross_entropy(logits, targets.flatten())
    if not lesson:
        return hard
    ids, p = (part.flatten(0, 1) for part in lesson)  # (N, K)
    return (1 - recipe.distill_weight) * hard + taught_loss(logits, ids, p.float(), recipe)


def taught_loss(logits: Tensor, ids: Tensor, p: Tensor, recipe: Recipe) -> Tensor:
    """Cross-entropy with the target's K likeliest tokens, and the share of p that q does not cover."""
    log_q = torch.log_softmax(logits, dim=-1).gather(-1, ids)  # (N, K)
    soft = -(p * log_q).sum(-1).mean()
    apart = 1 - torch.minimum(p, log_q.exp()).sum(-1).mean()
    return recipe.distill_weight * soft + recipe.overlap_weight * apart


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Held-out measures: loss in nats a token; with a teacher also how often the draft would be accepted.

    `acceptance` is the mean of Σ min(p, q) at temperature 1, `agreement` the share of equal arg-maxes, both at the
    positions of real text.
    """

    loss: float
    acceptance: float | None = None
    agreement: float | None = None


@torch.no_grad()
def evaluate(network: Llama, teacher: Llama | None, batches: list[Batch]) -> HeldOut:
    """Means over all held-out tokens, in evaluation mode; the network's mode is put back afterwards."""
    was_training = network.training
    network.eval()
    count = sum(batch[1].numel() for batch in batches)
    sums = [measure(network, teacher, batch) for batch in batches]
    network.train(was_training)
    loss, acceptance, agreement = (sum(column) / count for column in zip(*sums, strict=True))
    return HeldOut(loss) if teacher is None else HeldOut(loss, acceptance, agreement)


def measure(network: Llama, teacher: Llama | None, batch: Batch) -> tuple[float, float, float]:
    """Sums over a batch of loss, Σ min(p, q) and equal arg-maxes; the last two are 0 without a teacher."""
    tokens, targets = batch[:2]
    logits = flat_logits(network, tokens)  # (N, V)
    loss = F.cross_entropy(logits, targets.flatten(), reduction="sum").item()
    if teacher is None:
        return loss, 0.0, 0.0
    p_logits = flat_logits(teacher, tokens)  # (N, V)
    overlap = torch.minimum(torch.softmax(logits, dim=-1), torch.softmax(p_logits, dim=-1)).sum().item()
    return loss, overlap, (logits.argmax(-1) == p_logits.argmax(-1)).sum().item()
