"""The real SmolLM2-135M-Instruct, fetched once for all tests, and the bundled pair."""

from pathlib import Path

import pytest

from specdec import LanguageModel, load_model
from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET, fetch
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
def smollm2() -> LanguageModel:
    return load_model(NAME)


@pytest.fixture(scope="session")
def network(smollm2: LanguageModel) -> Transformer:
    return smollm2.network


@pytest.fixture(scope="session")
def bundled() -> tuple[LanguageModel, LanguageModel]:
    """Target and draft."""
    return load_model(DEFAULT_TARGET), load_model(DEFAULT_DRAFT)
