"""Serve agents over the Model Context Protocol: their memory, goals, conversations and traces as tools and resources."""
