"""Services of channels, messages, webhooks, hooks and conversations."""
