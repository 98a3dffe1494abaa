"""Signals: what changed about an agent, in the order in which it was committed."""
