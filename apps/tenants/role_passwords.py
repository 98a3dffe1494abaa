"""Change the passwords of the serving roles to those of another master key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from django.conf import settings
from django.db import connections
from psycopg import sql

from apps.tenants.keys import master_keys, role_passwords, store_role_password
from apps.tenants.postgresql.passwords import is_refused_password


def derived_aliases() -> Iterator[str]:
    """Yield the connections whose role has a password derived from the master key."""
    for alias in connections:
        if connections[alias].settings_dict["USER"] in settings.ARBOR_DERIVED_ROLES:
            yield alias


def set_role_password(alias: str) -> None:
    """Set the role's password to the one of the current master key. Each role may change its own."""
    role = str(connections[alias].settings_dict["USER"])
    password = role_passwords(role)[0]
    # Stored before the change: processes without the master key try both passwords, so they connect before and after it.
    store_role_password(role, password)
    with connections[alias].cursor() as cursor:
        verifier = scram_verifier(connections[alias].connection, role, password)
        # ALTER ROLE takes no bound parameters.
        cursor.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier))
        )


def key_of_role(alias: str) -> str | None:
    """Return the id of the first open master key whose derived password the server accepts; None if it accepts none."""
    parameters = connections[alias].get_connection_params()
    role = str(parameters["user"])
    for key, password in zip(master_keys().ids, role_passwords(role), strict=True):
        try:
            psycopg.connect(**{**parameters, "password": password}).close()
        except psycopg.OperationalError as error:
            if not is_refused_password(error):
                raise
            continue
        return key
    return None


def scram_verifier(connection: Any, role: str, password: str) -> str:
    """Return a password's SCRAM verifier: statements may appear in the server's log, so they never contain the password."""
    verifier: bytes = connection.pgconn.encrypt_password(
        password.encode(), role.encode(), algorithm=b"scram-sha-256"
    )
    return verifier.decode()
