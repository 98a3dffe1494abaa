"""Texts by rule: words and their vectors, phrases, concepts, summaries, code blocks."""
