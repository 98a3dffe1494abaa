"""The self through real heartbeats: stored parts are in the prompt, replies reach their rows."""
