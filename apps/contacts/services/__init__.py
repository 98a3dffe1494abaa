"""Services of channels, messages and conversations."""
