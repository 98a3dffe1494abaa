"""What can be done to agents and templates."""
