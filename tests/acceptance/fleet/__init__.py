"""A real fleet for tests: servers, workers, a stub model, and injected failures."""
