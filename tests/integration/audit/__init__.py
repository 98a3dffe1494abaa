"""The audit log: levels, search, seals and their verification."""
