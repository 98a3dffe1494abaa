"""Goals and plans through real heartbeats."""
