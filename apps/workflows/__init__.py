"""Workflows and their runs as rows."""
