"""Maintain memories in bounded rounds, and watch that the jobs run."""
