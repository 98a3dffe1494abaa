"""Maintain memories in bounded job runs, and watch that the jobs run."""
