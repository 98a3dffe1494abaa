"""Services of agents and templates."""
