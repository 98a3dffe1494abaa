"""Where the mind meets the world: each module implements a port, and only here is there a network."""
