"""Open the runtime of a tenant's agents for programs that embed Arbor."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import OperationalError

from arbor.errors import ServerError
from arbor.runtime import AgentRuntime
from config.database_errors import explain_database_error

if TYPE_CHECKING:
    from apps.fleet.runtime import Runtime

#: The default actor in the audit log.
ACTOR = "program"


def open_runtime(*, tenant: str, actor: str = ACTOR) -> AgentRuntime:
    """Return the runtime of a tenant's agents; `tenant` is its slug, `actor` the actor in the audit log.

    The settings are those of the command line: `.env`, the environment, and the servers of a running `arbor up`. Heartbeats
    requested here run in this process, one at a time per agent, also beside a running fleet. The runtime is thread-safe:
    each thread has a connection of its own. Raises NotFound for the tenant, ConfigurationInvalid, and ServerError when the
    database does not answer.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Sets Django up, once per process.
    importlib.import_module("workers.app")
    services = importlib.import_module("apps.fleet.runtime")
    tenants = importlib.import_module("apps.tenants.services")
    try:
        row = tenants.tenant_by_slug(tenant)
    except OperationalError as error:
        raise ServerError(explain_database_error(error, settings)) from error
    runtime: Runtime = services.Runtime(tenant_id=row.id, actor=actor)
    return runtime
