"""The door for programs that embed Arbor: sets Django up, and returns the runtime of a tenant's agents."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import OperationalError

from arbor.errors import ServerError
from arbor.runtime import AgentRuntime
from config.away import explain_database_error

if TYPE_CHECKING:
    from apps.fleet.runtime import Runtime

#: Who the record of acts names when the program does not say.
ACTOR = "program"


def open_runtime(*, tenant: str, actor: str = ACTOR) -> AgentRuntime:
    """Return the runtime of the tenant's agents; `tenant` is its slug, `actor` is who the record of acts names.

    The settings are those of the command line: `.env`, the environment, and the servers of a running `arbor up`. Beats that
    are asked for here run in this process, one at a time per agent; a fleet beside it does no harm. Safe for threads: each
    has a connection of its own. Raises NotFound for the tenant, ConfigurationInvalid, and ServerError when the database does
    not answer.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Sets Django up, once per process.
    importlib.import_module("workers.app")
    services = importlib.import_module("apps.fleet.runtime")
    tenants = importlib.import_module("apps.tenants.services")
    try:
        found = tenants.tenant_by_slug(tenant)
    except OperationalError as error:
        raise ServerError(explain_database_error(error, settings)) from error
    made: Runtime = services.Runtime(tenant_id=found.id, actor=actor)
    return made
