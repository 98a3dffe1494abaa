"""A mind at hand: the image of an agent's memories in a process, and the search of it."""
