"""A real fleet for tests: servers, workers, a model's stub, and ways to hurt them."""
