"""Model calls of maintenance, conversations and workflows: created, settled, recovered, cleaned up."""
