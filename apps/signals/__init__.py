"""Signals: state changes of agents and of what a tenant's agents share, in the order of their commits."""
