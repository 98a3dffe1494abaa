"""Statements that set up the embedded database server. They run before Django has a database, so the ORM cannot be used."""

from __future__ import annotations

from psycopg import sql

#: Finds the database; if it exists, only the owner's password is set.
FIND_DATABASE = "SELECT 1 FROM pg_database WHERE datname = %s"
#: Finds the owner, which an interrupted set-up may have created.
FIND_ROLE = "SELECT 1 FROM pg_roles WHERE rolname = %s"
#: Run in the template, so that each new database, such as those of tests, has the extension, which only a superuser can add.
ADD_VECTOR = "CREATE EXTENSION IF NOT EXISTS vector"
#: The owner creates databases for tests and the serving roles, and migrates without row-level security.
CREATE_OWNER = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE BYPASSRLS")
SET_OWNER_PASSWORD = sql.SQL("ALTER ROLE {} PASSWORD {}")
#: Serving roles may connect to Arbor's database only.
REVOKE_OTHER_DATABASES = "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC"
CREATE_DATABASE = sql.SQL("CREATE DATABASE {} OWNER {}")
