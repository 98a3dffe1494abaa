"""The audit log as values."""
