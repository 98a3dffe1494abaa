"""Clusters as values: formed, linked, and reclustered from all memories."""
