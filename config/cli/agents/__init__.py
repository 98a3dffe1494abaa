"""Commands about agents, their heartbeats, policies and templates."""
