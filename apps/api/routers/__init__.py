"""One module of operations for each feature."""
