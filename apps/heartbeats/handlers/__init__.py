"""The nodes of a heartbeat's pipeline: each reads the context, does one thing, and says what it changed."""
