"""Statements of `arbor doctor` about the database server itself, of which Django has no model."""

from __future__ import annotations

#: Also shows that the role can sign in.
SERVER_VERSION = "SELECT current_setting('server_version')"
VECTOR_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
#: The time of the server, not of the transaction: it is compared with this machine's.
SERVER_CLOCK = "SELECT clock_timestamp()"
