"""The changing sections of a prompt."""
