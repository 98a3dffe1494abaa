"""Remembering, recalling, and the upkeep of memories."""
