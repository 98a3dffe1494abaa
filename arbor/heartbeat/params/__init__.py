"""What each action of a heartbeat takes: typed, bounded, and described in the words that a model reads."""
