"""The embedded PostgreSQL and Valkey, run as child processes on the loopback."""

from config.servers.postgres import EmbeddedPostgres
from config.servers.valkey import EmbeddedValkey

__all__ = ["EmbeddedPostgres", "EmbeddedValkey"]
