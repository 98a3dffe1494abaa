"""Commands about messages between agents and people."""
