"""Execute the model calls of heartbeats, and resume the heartbeats with the results."""
