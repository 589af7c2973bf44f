// What specdec/decoding/theory.py says, for the sliders to be answered at once; a test compares the two.

/** E[τ] = (1 − α^(k+1)) / (1 − α): tokens a round emits on average. */
export function expectedTokens(alpha, k) {
  return alpha === 1 ? k + 1 : (1 - alpha ** (k + 1)) / (1 - alpha);
}

/** Tokens per second over those of plain decoding: E[τ] / (v + k·c). */
export function speedUp(alpha, k, c, v = 1) {
  return expectedTokens(alpha, k) / (v + k * c);
}
