"""Formats of dates and numbers in English."""
