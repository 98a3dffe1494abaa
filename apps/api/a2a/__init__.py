"""The Agent2Agent protocol, served: cards of published agents, and tasks for them."""
