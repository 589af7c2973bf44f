"""These tests need the training extra; without it they are skipped, not failed."""

import pytest

pytest.importorskip("torch", reason="the training extra is not installed")
pytest.importorskip("tokenizers", reason="the training extra is not installed")
