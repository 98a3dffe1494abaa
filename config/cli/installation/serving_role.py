"""Refuse to serve under a database role that row-level security does not bind."""

from __future__ import annotations

import os
from typing import Any

import click
import django
from django.conf import settings
from django.db import OperationalError, connections

from apps.tenants.checks import find_role_faults
from apps.tenants.scope import APP
from arbor.errors import ConfigurationInvalid
from config.database_errors import first_line


def refuse_unsafe_role() -> None:
    """Raise ConfigurationInvalid if the serving role would see the rows of all tenants.

    A database that does not answer is reported only: workers wait for it, and the console shows the problem.
    """
    # The console's first process loads Django here, so that its children share the memory.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    connection: Any = connections[APP]
    try:
        faults = find_role_faults()
    except OperationalError as error:
        reason = (
            f"the database does not answer: {first_line(error)}"
            if settings.ARBOR_HAS_DATABASE
            else "no database is configured"
        )
        click.echo(f"arbor: the serving role is not checked: {reason}", err=True)
        return
    finally:
        # Children are forked later and must inherit neither a connection nor a pool.
        connection.close()
        connection.close_pool()
    if faults:
        raise ConfigurationInvalid(
            f"{'; '.join(faults)}: name it in ARBOR_APP_ROLE or ARBOR_APP_DATABASE_URL, and run `arbor prepare`"
        )
