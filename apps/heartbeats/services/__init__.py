"""Schedule, run and record heartbeats and external calls."""
