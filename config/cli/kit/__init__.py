"""Build commands: declarations, parameter types, look-ups by name, tables and JSON."""
