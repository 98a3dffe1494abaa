"""Statements that set up the embedded database server. They run before Django has a database, so there is no ORM for them."""

from __future__ import annotations

from psycopg import sql

#: Whether the database is there already: then nothing is set up.
FIND_DATABASE = "SELECT 1 FROM pg_database WHERE datname = %s"
#: Whether an earlier set-up, which was cut off, has made the owner.
FIND_ROLE = "SELECT 1 FROM pg_roles WHERE rolname = %s"
#: In the template, so that every database made from it, as tests do, has it: only a superuser may add it.
ADD_VECTOR = "CREATE EXTENSION IF NOT EXISTS vector"
#: The owner makes databases for tests and the serving roles, and migrates past row-level security.
CREATE_OWNER = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE BYPASSRLS PASSWORD {}")
#: Serving roles get at Arbor's database only.
CLOSE_OTHERS = "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC"
CREATE_DATABASE = sql.SQL("CREATE DATABASE {} OWNER {}")
