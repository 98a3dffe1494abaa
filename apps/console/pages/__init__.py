"""Read the data of pages that show one row with all that belongs to it."""
