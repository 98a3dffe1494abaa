"""The prompt of a heartbeat: instructions, sections, and reductions that fit it into a model's window."""
