"""Turn texts into vectors, one embedder per mind, and move minds between embedders."""
