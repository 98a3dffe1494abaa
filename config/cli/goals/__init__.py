"""Commands about goals and plans."""
