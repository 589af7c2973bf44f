"""The four kinds of judged tokens can be told apart by whoever sees two colours only, in both themes.

Colour blindness is simulated after Machado, Oliveira and Fernandes (2009), at full severity, on linear RGB; colours
differ by ΔE of CIE 1976, where 10 is plain at a glance.
"""

import re
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from specdec.ui.assets import page_file
from tests.ui.test_style import linear, theme

KINDS = ("accepted", "rejected", "recovered", "bonus")
MARKS = ("", "×", "↻", "+")
LEAST = 10.0
SEEN = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]  # sRGB


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear RGB as L*, a*, b* under the white of sRGB."""
    x, y, z = np.cbrt(np.array(XYZ) @ rgb / np.sum(XYZ, axis=1))  # none is so dark that the cube root would not do
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("selector", [":root", ".dark"])
@pytest.mark.parametrize("blindness", SEEN)
def test_lines_keep_their_colours_apart(selector: str, blindness: str):
    """ΔE of 10 at least between any two; 11.7 is the smallest, of rejected and recovered, deuteranopia, dark."""
    paint = theme(selector)
    seen = {kind: lab(np.clip(np.array(SEEN[blindness]) @ linear(paint[f"{kind}-line"]), 0, 1)) for kind in KINDS}
    apart = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(KINDS, 2)}
    assert {pair: distance for pair, distance in apart.items() if distance < LEAST} == {}


def test_every_kind_has_its_own_mark():
    """Ink and paper of two kinds can come as near as ΔE 2 (tritanopia: accepted, bonus): there the marks tell them."""
    found = [re.search(rf'^\.sd-{kind}::before \{{\s+content: "(.)"', page_file("tokens.css"), re.M) for kind in KINDS]
    assert tuple(mark[1] if mark else "" for mark in found) == MARKS
