"""Servers, databases, populations and figures that several benchmarks share."""
