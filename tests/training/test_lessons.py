"""Lessons hold what the target thinks, and each is given once an epoch; what it wrote by itself is its own."""

from pathlib import Path

import numpy as np
import pytest
import torch

from specdec.errors import NotFoundError
from specdec.training.corpus import encode_stream
from specdec.training.lessons import TOP, Lessons
from specdec.training.owntext import OPENINGS, own_windows, write_on
from tests.training.toys import SHAPE, documents, lessons, network, tokenizer


def test_a_lesson_is_the_targets_top(tmp_path: Path) -> None:
    """Ids are the K likeliest in order, p their probabilities, scaled to add up to 1."""
    teacher = network(seed=1).eval()
    tokens, targets, ids, p = lessons(tmp_path, teacher).batch(0, 3)
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logits = teacher(tokens).float()
    top = logits.topk(TOP)
    assert torch.allclose(logits.gather(-1, ids), top.values, atol=1e-2)
    assert torch.allclose(p.float(), torch.softmax(top.values, dim=-1), atol=2e-3)
    assert torch.allclose(p.float().sum(-1), torch.ones(p.shape[:2]), atol=5e-3)


def test_an_epoch_gives_each_lesson_once(tmp_path: Path) -> None:
    """The windows of an epoch are all there are, in another order than those of the next."""
    taught = lessons(tmp_path, network())
    epochs = [taught.batch(epoch, taught.per_epoch)[0] for epoch in range(2)]
    first, second = ([tuple(row) for row in epoch.tolist()] for epoch in epochs)
    assert sorted(first) == sorted(second) and first != second
    assert sorted(map(taught._row, range(taught.about["windows"]))) == list(range(taught.per_epoch))


def test_missing_lessons_name_the_command(tmp_path: Path) -> None:
    """A folder without lessons says how they are made."""
    with pytest.raises(NotFoundError, match="specdec train teach"):
        Lessons(tmp_path, 0)


def test_own_text_is_what_the_model_would_say() -> None:
    """Near temperature 0 each token is as good as the likeliest, worked out without the cache."""
    model = network(seed=3).bfloat16().eval()
    openings = np.array([[0, 5, 9], [0, 7, 7]], dtype=np.int64)
    windows = write_on(model, openings, seed=0)
    assert windows.shape == (2, SHAPE.context + 1) and np.array_equal(windows[:, :3], openings)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logits = model(torch.from_numpy(windows[:1, :-1].astype(np.int64)))[0].float()
    chosen = logits.gather(-1, torch.from_numpy(windows[0, 1:, None].astype(np.int64)))[:, 0]
    assert (logits.max(-1).values - chosen)[2:].max() < 0.15
    assert logits.std() > 0.05


def test_own_windows_begin_like_documents() -> None:
    """As many as asked for, opened by turns with more of some document, the same for the same seed."""
    stream = encode_stream(tokenizer(), documents())
    first, again = (np.concatenate(list(own_windows(network(), stream, 3, seed=4))) for _ in range(2))
    assert first.shape == (3, SHAPE.context + 1) and np.array_equal(first, again)
    starts = {tuple(stream[i : i + OPENINGS[0]]) for i in np.flatnonzero(stream == 0)}
    assert {tuple(row[: OPENINGS[0]]) for row in first} <= starts
