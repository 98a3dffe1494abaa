"""Starts the parts of one installation, watches them, restarts what ends, and leaves nothing behind."""
