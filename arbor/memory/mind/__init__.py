"""Mind images: an agent's memories as arrays in a process, and their search."""
