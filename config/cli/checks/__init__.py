"""The checks of `arbor doctor`, by subject."""
