"""Seeds: one agent as one signed file."""
