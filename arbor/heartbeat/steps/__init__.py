"""The steps of a heartbeat: functions from its state to the next state."""
