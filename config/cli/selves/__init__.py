"""Commands about the self of an agent."""
