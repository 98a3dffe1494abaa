"""Workflows as values: definitions read from DOT graphs, steps, retries, outputs."""
