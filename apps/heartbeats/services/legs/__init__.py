"""Run a batch of heartbeats for one leg: lease, load, answer needs, commit."""
