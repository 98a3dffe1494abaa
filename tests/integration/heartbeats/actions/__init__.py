"""Actions, each through a real heartbeat."""
