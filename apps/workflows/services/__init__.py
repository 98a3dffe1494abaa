"""Define, start, walk, approve and cancel workflows."""
