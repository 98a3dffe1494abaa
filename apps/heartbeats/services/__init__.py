"""Claim due agents, run heartbeats in cycles or in this process, record processes."""
