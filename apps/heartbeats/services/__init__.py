"""Heartbeats: when they are due, how they are walked, what they ask of models."""
