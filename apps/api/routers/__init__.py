"""One module of operations for each capability."""
