"""How dates and numbers are written in English."""
