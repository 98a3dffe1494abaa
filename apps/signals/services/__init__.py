"""Emit, read and stream signals."""
