"""Capture agents as seeds, and restore, import, fork, compare and merge seeds."""
