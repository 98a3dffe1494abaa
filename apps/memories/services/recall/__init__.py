"""Recall memories from cached minds or by a scan, rank them, and read activations."""
