"""Read the data of pages that are composed of many rows."""
