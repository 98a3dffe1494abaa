"""The commands that run the installation and its processes."""

from __future__ import annotations

from pathlib import Path

import click

from config.cli.commands.tenant import ROLES
from config.cli.kit.declarations import PassedArguments, Run, argument, command, one_of, option
from config.cli.kit.values import NumberRange

#: The kinds of pools of a worker (`config.pools.PoolKind`).
POOL_KINDS = ("prefork", "threads")


def _port(setting: str, default: int) -> click.Option:
    return option(
        "--port",
        envvar=setting,
        type=click.IntRange(0, 65_535),
        default=default,
        help="Port to listen on.",
    )


_up = command(
    "up",
    "Run everything from this terminal: servers, workers, scheduler, console, API, Flower. Ctrl-C stops it.",
    option("--only", metavar="PARTS", help="Parts to run, such as web,worker,scheduler.  [default: all]"),
    option("--no-demo", is_flag=True, help="Create no demo tenants and agents."),
    option("--port", type=click.IntRange(1, 65_535), help="Port of the console.  [default: 8000]"),
    run="installation.up:up",
    details="With DATABASE_URL or CELERY_BROKER_URL set, that server is yours and none is started here.",
    json=False,
    needs_django=False,
)

_down = command(
    "down",
    "Stop what `arbor up` runs from this data folder, and the processes that a killed `arbor up` left.",
    run="installation.down:down",
    json=False,
    needs_django=False,
)

_status = command(
    "status",
    "Show heartbeats, agents, queues, workers, backlogs, maintenance and addresses.",
    option("--watch", is_flag=True, help="Refresh until Ctrl-C; with --json, print one object per line."),
    run="installation.status:status",
)

_doctor = command(
    "doctor",
    "Check interpreter, database, roles, vectors, keys, scheduler, workers, broker, model and embedder.",
    run="doctor:doctor",
    details="Exit code 1 when a check fails.",
)

_demo = command(
    "demo",
    "Show an agent's first hour: create it, ingest a conversation, run three heartbeats, and compare.",
    option(
        "--tenant", "tenant_slug", metavar="SLUG", help="Its tenant.  [default: demo, created if missing]"
    ),
    option("--keep", is_flag=True, help="Keep the agent; otherwise it is destroyed at the end."),
    option(
        "--timeout",
        type=NumberRange(min=1),
        default=300.0,
        help="Seconds to follow each heartbeat that workers run.",
    ),
    run="demo:demo",
    details="It works with any model, and with none. Running workers process the heartbeats; without workers this process does."
    " Exit code 1 when a heartbeat fails.",
    examples=("arbor demo", "arbor demo --keep"),
)

_prepare = command(
    "prepare",
    "Migrate the database, seed the built-in templates, create the operator's account and the demo.",
    option("--demo/--no-demo", default=True, help="Make two tenants with three agents each."),
    option("--report", type=click.Path(dir_okay=False, path_type=Path), hidden=True),
    run="installation.prepare:prepare",
    details="Run again, it changes nothing.",
    json=False,
)

_worker = command(
    "worker",
    "Run one pool of workers.",
    option("--queues", "-q", required=True, help="Queues to consume, separated by commas."),
    option(
        "--pool",
        type=one_of(POOL_KINDS),
        default=POOL_KINDS[0],
        help="Run tasks in processes or threads.",
    ),
    option(
        "--concurrency",
        "-c",
        type=click.IntRange(min=1),
        help="Tasks at once.  [default: the number of cores]",
    ),
    option("--name", help="Name in Flower and in the logs.  [default: the queues and the process id]"),
    run="installation.celery_process:worker",
    details="Pools that wait for other services use threads.",
    examples=("arbor worker --queues heartbeat", "arbor worker --queues llm,outbox --pool threads -c 200"),
    json=False,
    needs_django=False,
)

_scheduler = command(
    "scheduler",
    "Run the scheduler, which publishes the periodic tasks. One per installation is enough; more do no harm.",
    run="installation.celery_process:scheduler",
    json=False,
    needs_django=False,
)

_web = command(
    "web",
    "Run the console.",
    option(
        "--host",
        envvar="ARBOR_WEB_HOST",
        default="127.0.0.1",
        help="Address to listen on.",
    ),
    _port("ARBOR_WEB_PORT", 8000),
    option(
        "--processes",
        envvar="ARBOR_WEB_PROCESSES",
        type=click.IntRange(min=1),
        default=1,
        help="Server processes.",
    ),
    run="installation.web:web",
    json=False,
    needs_django=False,
)

_api = command(
    "api",
    "Run the API.",
    option(
        "--host",
        envvar="ARBOR_API_HOST",
        default="127.0.0.1",
        help="Address to listen on.",
    ),
    _port("ARBOR_API_PORT", 8001),
    run="installation.api:api",
    json=False,
    needs_django=False,
)

_openapi = command(
    "openapi",
    "Print the OpenAPI document of the API.",
    option("--check", is_flag=True, help="Compare it with docs/reference/openapi.json instead."),
    run="openapi:openapi",
    details="Exit code 1 when the committed document is not up to date.",
    examples=("arbor openapi > openapi.json",),
    json=False,
)

_flower = command(
    "flower",
    "Run Flower, the view of the queues. It asks for the name and password of a superuser's account.",
    option(
        "--host",
        envvar="ARBOR_FLOWER_HOST",
        default="127.0.0.1",
        help="Address to listen on.",
    ),
    _port("ARBOR_FLOWER_PORT", 5555),
    run="installation.flower:flower",
    json=False,
    needs_django=False,
)

_mcp = command(
    "mcp",
    "Serve agents as memory over MCP, on standard input and output.",
    option(
        "--tenant",
        "tenant_slug",
        metavar="SLUG",
        help="The tenant.  [default: ARBOR_TENANT, or the only one]",
    ),
    option("--agent", metavar="NAME", help="Serve this agent alone.  [default: all of the tenant]"),
    option(
        "--role",
        type=one_of(ROLES),
        default="operator",
        help="The tools that the client gets: a viewer's only read.",
    ),
    run="mcp:serve",
    details="Claude, Cursor and other clients start this command: docs/how-to/use-as-memory.md has their configurations.",
    examples=("arbor mcp --tenant acme --agent Vega", "arbor mcp --tenant acme --role viewer"),
    json=False,
    needs_django=False,
)

_manage = PassedArguments(
    "manage",
    callback=Run("manage:manage", needs_django=False),
    params=[argument("arguments", nargs=-1, type=click.UNPROCESSED)],
    add_help_option=False,
    help="Run a management command of Django: `arbor manage help` lists them.",
)

COMMANDS = (
    _up,
    _down,
    _status,
    _doctor,
    _demo,
    _prepare,
    _worker,
    _scheduler,
    _web,
    _api,
    _mcp,
    _openapi,
    _flower,
    _manage,
)
