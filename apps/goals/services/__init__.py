"""Services of goals and plans."""
