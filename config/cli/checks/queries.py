"""Statements of `arbor doctor` about the database server itself, which Django has no model for."""

from __future__ import annotations

#: Run under each role, which also shows that the role can sign in.
SERVER_VERSION = "SELECT current_setting('server_version')"
VECTOR_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
#: The current time of the server, not that of the transaction, for the comparison with this machine's.
SERVER_CLOCK = "SELECT clock_timestamp()"
