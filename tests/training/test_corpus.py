"""Documents become batches, and nothing held out is ever trained on."""

from pathlib import Path

import numpy as np
import pytest
import torch

from specdec.errors import ConfigError
from specdec.training.corpus import Windows, encode_stream, held_out_batches, read_documents, split_documents
from tests.training.toys import documents, tokenizer, write_corpus


def test_documents_are_read_and_split(tmp_path: Path) -> None:
    """The separator line parts documents; every tenth is held out and all others are kept, in order."""
    read = read_documents([write_corpus(tmp_path)])
    assert read == documents()
    training, held_out = split_documents(read, 10)
    assert held_out == read[9::10]
    assert len(training) + len(held_out) == len(read)
    assert training[:10] == [*read[:9], read[10]]


def test_every_document_begins_with_the_special_token() -> None:
    """The stream holds one special token a document and one at the end, and else the documents' own ids."""
    stream = encode_stream(tokenizer(), ["Tim saw", "a ball"])
    first, second = (tokenizer().encode(text, add_special_tokens=False).ids for text in ("Tim saw", "a ball"))
    assert stream.tolist() == [0, *first, 0, *second, 0]


def test_an_epoch_sees_each_position_once() -> None:
    """Within an epoch no position is a target twice, and fewer than two windows' worth are left out."""
    windows = Windows(np.arange(1000, dtype=np.int32), 16, seed=3)
    for epoch in range(3):
        rows = [windows.batch(step, 1)[1] for step in range(epoch * windows.per_epoch, (epoch + 1) * windows.per_epoch)]
        seen = torch.cat(rows).flatten()
        assert len(seen.unique()) == len(seen) > 1000 - 2 * 16 - 1


def test_targets_follow_inputs_and_batches_repeat() -> None:
    """The target of each position is the next token; a batch depends on nothing but seed and step."""
    windows = Windows(np.arange(1000, dtype=np.int32), 16, seed=3)
    tokens, targets = windows.batch(5, 4)
    assert tokens.shape == targets.shape == (4, 16)
    assert torch.equal(tokens + 1, targets)
    assert torch.equal(tokens, Windows(windows.stream, 16, seed=3).batch(5, 4)[0])
    assert not torch.equal(tokens, Windows(windows.stream, 16, seed=4).batch(5, 4)[0])


def test_too_short_a_stream_is_refused() -> None:
    """Fewer tokens than the windows need is an error that names both numbers."""
    with pytest.raises(ConfigError, match=r"20 tokens .* windows of 16"):
        Windows(np.zeros(20, dtype=np.int32), 16, seed=0)
    with pytest.raises(ConfigError, match=r"16 tokens .* window of 16"):
        held_out_batches(np.zeros(16, dtype=np.int32), 16, 2)
