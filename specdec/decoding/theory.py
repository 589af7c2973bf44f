"""What Leviathan et al. (2023) predict, to be shown beside what is measured.

α accepted ÷ judged, k lookahead, c seconds of a draft step ÷ seconds of a target step, v cost of a target pass over
k + 1 tokens in units of a pass over one (the paper assumes v = 1; on a CPU it is more).
"""


def expected_tokens(alpha: float, k: int) -> float:
    """E[τ] = (1 − α^(k+1)) / (1 − α): tokens a round emits on average, the target's own included."""
    return float(k + 1) if alpha == 1 else (1 - alpha ** (k + 1)) / (1 - alpha)


def speed_up(alpha: float, k: int, c: float, v: float = 1.0) -> float:
    """Tokens per second over those of plain decoding: E[τ] / (v + k·c)."""
    return expected_tokens(alpha, k) / (v + k * c)
