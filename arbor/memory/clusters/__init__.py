"""Clusters as values: formed, linked, and formed anew from all memories."""
