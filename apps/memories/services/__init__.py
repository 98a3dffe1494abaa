"""Store, recall and maintain memories."""
