"""The self as its agent's birth, or a person, changes it."""
