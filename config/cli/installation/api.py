"""Run the API with uvicorn."""

from __future__ import annotations

import os

import uvicorn

from config.cli.installation.serving_role import refuse_unsafe_role
from config.environment import env
from config.process_secrets import remove_foreign_secrets, secrets_of

#: The seconds in which open requests can finish when the API stops; streams end at once.
GRACEFUL_TIMEOUT_S = 4
#: The seconds after which a connection without a request is closed.
KEEP_ALIVE_S = 20
#: Connections at once; more are answered 503.
MAX_CONNECTIONS = 2_000


def api(host: str, port: int) -> None:
    """Run the API."""
    # Read by the settings, which are loaded later.
    os.environ["ARBOR_PREPARED_STATEMENTS"] = env.str("ARBOR_PREPARED_STATEMENTS", default="true")
    remove_foreign_secrets(secrets_of("api"))
    os.environ["ARBOR_PROCESS_NAME"] = "arbor api"
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.api_settings"
    refuse_unsafe_role()
    serve(host=host, port=port)


def serve(*, host: str, port: int) -> None:
    """Run uvicorn until a signal ends it."""
    uvicorn.run(
        "config.asgi:application",
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACEFUL_TIMEOUT_S,
    )
