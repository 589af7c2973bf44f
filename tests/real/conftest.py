"""The real SmolLM2-135M-Instruct: fetched once for all tests, then read from the cache."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from specdec.checkpoints import fetch
from specdec.checkpoints.checkpoint import Checkpoint, open_checkpoint
from specdec.model import Transformer

NAME = "smollm2-135m-instruct"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("real")


@pytest.fixture(scope="session")
def checkpoint() -> Checkpoint:
    return open_checkpoint(fetch(NAME))


@pytest.fixture(scope="session")
def network(checkpoint: Checkpoint) -> Iterator[Transformer]:
    yield Transformer(checkpoint.config, checkpoint.weights)
