"""The steps of a heartbeat: functions from a beat to the next, by the names that a graph gives them."""
