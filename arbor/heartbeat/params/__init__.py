"""Parameters of actions: typed, bounded, and described for the model."""
