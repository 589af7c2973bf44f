"""Values of options, from text; what cannot be meant is an ArgumentTypeError with a sentence."""

import argparse
from typing import Literal

from specdec.config import Lookahead


def lookahead(text: str) -> Lookahead:
    """A whole number, or auto."""
    auto: Literal["auto"] = "auto"
    if text == auto:
        return auto
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor auto") from None


def positive(text: str) -> int:
    """1 … 1024."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1_024:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number between 1 and 1024")
    return int(text)
