"""The actions of a heartbeat, each through a real beat."""
