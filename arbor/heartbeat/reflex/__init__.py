"""The reflex policy, which decides by rule when no model is in use."""
