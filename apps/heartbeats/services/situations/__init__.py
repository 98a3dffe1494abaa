"""Read the situations of agents: one statement for a batch, and values from its columns."""
