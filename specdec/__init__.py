"""specdec: speculative decoding from scratch in NumPy."""
