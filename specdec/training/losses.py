"""What is minimised, and what is measured on held-out text.

A draft is accepted with probability Σ min(p, q) per token (Leviathan et al. 2023, arXiv:2211.17192), and KL(p ‖ q)
bounds 1 minus that (Pinsker), so a draft learns its target's whole distribution rather than the text alone
(Zhou et al. 2023, DistillSpec, arXiv:2310.08461; Hinton et al. 2015).

Shape letters: N tokens, V vocabulary. p target (teacher), q draft (student).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - PyTorch's own custom

from specdec.training.network import Llama

Batch = tuple[Tensor, Tensor]


def flat_logits(network: Llama, tokens: Tensor) -> Tensor:
    """[B, T] ids -> [N, V] logits in float32."""
    logits: Tensor = network(tokens)
    return logits.flatten(0, 1).float()


def training_loss(network: Llama, teacher: Llama | None, weight: float, batch: Batch) -> Tensor:
    """Mean nats a token: cross-entropy with the text, mixed with `weight` of that with the teacher's p."""
    tokens, targets = batch
    logits = flat_logits(network, tokens)  # (N, V)
    hard = F.cross_entropy(logits, targets.flatten())
    if teacher is None:
        return hard
    with torch.no_grad():
        p = torch.softmax(flat_logits(teacher, tokens), dim=-1)  # (N, V)
    soft = F.cross_entropy(logits, p)
    return weight * soft + (1 - weight) * hard


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
    count = sum(targets.numel() for _, targets in batches)
    sums = [measure(network, teacher, batch) for batch in batches]
    network.train(was_training)
    loss, acceptance, agreement = (sum(column) / count for column in zip(*sums, strict=True))
    return HeldOut(loss) if teacher is None else HeldOut(loss, acceptance, agreement)


def measure(network: Llama, teacher: Llama | None, batch: Batch) -> tuple[float, float, float]:
    """Sums over a batch of loss, Σ min(p, q) and equal arg-maxes; the last two are 0 without a teacher."""
    tokens, targets = batch
    logits = flat_logits(network, tokens)  # (N, V)
    loss = F.cross_entropy(logits, targets.flatten(), reduction="sum").item()
    if teacher is None:
        return loss, 0.0, 0.0
    p_logits = flat_logits(teacher, tokens)  # (N, V)
    overlap = torch.minimum(torch.softmax(logits, dim=-1), torch.softmax(p_logits, dim=-1)).sum().item()
    return loss, overlap, (logits.argmax(-1) == p_logits.argmax(-1)).sum().item()
