"""How agents and people reach each other: what goes out, what is said face to face."""
