"""Capabilities, trust and approvals as rows."""
