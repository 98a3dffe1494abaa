"""Maintenance calls with their replies, and the limits of a healthy memory."""
