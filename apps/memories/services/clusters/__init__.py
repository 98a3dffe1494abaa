"""Assign memories to clusters, recluster minds, and name clusters."""
