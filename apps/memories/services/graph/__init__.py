"""Relate memories, concepts, beliefs and goals, and answer questions about their relations."""
