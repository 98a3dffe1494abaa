"""Add, index and search documents; store skills; search all sources of an agent; subscribe agents to signals."""
