"""Services of the self."""
