"""Signals: emitted with the changes they describe, read in the order of their commits."""
