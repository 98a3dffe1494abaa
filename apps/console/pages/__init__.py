"""Read what the pages of single things show."""
