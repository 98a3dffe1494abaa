"""Conversations read from files, turn by turn, as memories."""
