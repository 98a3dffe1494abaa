"""All pages of the console and all operations of the API that read, of an installation with many agents.

A few agents live for some heartbeats in this process; SQL copies them with all their rows to tenants of different sizes.
Then every page is requested several times, in this process: the figures are those of the code and the database, without the
connection of a browser.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from django.db import connections
from django.test import Client, override_settings

from apps.access.services import create_token
from apps.heartbeats.services.inline import run_one_heartbeat
from apps.tenants.models import Role, Tenant, User
from apps.tenants.scope import ACCOUNTS, APP, OPS, OWNER, tenant_transaction
from apps.tenants.services import add_member, create_tenant
from bench.support.addresses import Address, api_addresses, console_addresses
from bench.support.copies import Copier, Copy
from bench.support.database import connect_as_superuser, fetch_value
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import ACTOR, TEMPLATES, BenchAgent, populate

#: The bar of a page and of a list operation.
BAR_MS = 300
#: One in this number of copies has memories.
_COPIES_PER_MEMORIES = 20
_SLOWEST_SHOWN, _TEXT_SHOWN = 25, 400
_API = {
    "ROOT_URLCONF": "apps.api.urls",
    "MIDDLEWARE": ["apps.api.middleware.ApiMiddleware"],
}


def measure(
    installation: Installation,
    *,
    agents: int,
    tenants: int,
    heartbeats: int,
    busy_heartbeats: int,
    rounds: int,
) -> dict[str, Any]:
    """Return the times of all pages and operations, by group, the slowest pages, and the slowest statements."""
    size = f"{agents} agents, {tenants} tenants, {heartbeats} heartbeats, {busy_heartbeats} of the busy agent"
    with connect_as_superuser(installation) as database:
        busy = _filled_before(installation, size)
        if busy is None:
            busy = fill(
                database,
                agents=agents,
                tenants=tenants,
                heartbeats=heartbeats,
                busy_heartbeats=busy_heartbeats,
            )
            print_progress("analyzing")
            database.execute("VACUUM (ANALYZE)")
            installation.write_note(f"{size}\n{busy.tenant_id} {busy.agent_id}")
        counts = count_rows(database)
    addresses = [*console_addresses(busy), *api_addresses(busy)]
    return {
        **counts,
        **measure_pages(busy, addresses, rounds=rounds),
    }


def _filled_before(installation: Installation, size: str) -> BenchAgent | None:
    """Return the busy agent of a folder that an earlier run filled. Raises RuntimeError if it has another size."""
    note = installation.read_note()
    if not note:
        return None
    filled, ids = note.splitlines()
    if filled != size:
        raise RuntimeError(f"the folder has {filled}, not {size}; ask for the same, or name another folder")
    tenant_id, agent_id = map(UUID, ids.split())
    return BenchAgent(tenant_id=tenant_id, agent_id=agent_id)


# --- Rows -----------------------------------------------------------------------------------------------


def fill(
    database: psycopg.Connection[Any], *, agents: int, tenants: int, heartbeats: int, busy_heartbeats: int
) -> BenchAgent:
    """Create tenants with agents and their heartbeats; return an agent of the largest tenant with a long life."""
    originals = populate(agents=min(len(TEMPLATES), agents), tenants=1)
    rounds = max(1, heartbeats // agents)
    bounds = _run_rounds(originals, rounds)
    database.execute(_VARIETY)
    copier = Copier(database, tenant_id=originals[0].tenant_id, bounds=bounds)
    owners = _tenants_of_copies(tenants, agents // len(originals))
    copies = [
        Copy(number=number, tenant_id=tenant_id, remembers=number % _COPIES_PER_MEMORIES == 0)
        for number, tenant_id in enumerate(owners)
    ]
    print_progress(f"copying {len(originals)} agents {len(copies)} times")
    copier.copy(copies)
    copier.lengthen(originals[0].agent_id, copies[0], busy_heartbeats // rounds)
    database.execute(_INSTALLATION, [agents])
    return BenchAgent(
        tenant_id=copies[0].tenant_id, agent_id=copier.copied_id(originals[0].agent_id, copies[0])
    )


def _run_rounds(agents: Sequence[BenchAgent], rounds: int) -> list[datetime]:
    """Run heartbeats of all agents in rounds; return the beginnings of the rounds."""
    print_progress(f"running {rounds} heartbeats of {len(agents)} agents")
    bounds = []
    for _ in range(rounds):
        bounds.append(datetime.now(UTC))
        for agent in agents:
            run_one_heartbeat(agent_id=agent.agent_id, tenant_id=agent.tenant_id)
    return bounds


def _tenants_of_copies(tenants: int, copies: int) -> Iterator[UUID]:
    """Yield the tenant of each copy: the first tenant gets half of the copies, and each further tenant fewer than the tenant before."""
    ids = [create_tenant(slug=f"tenant-{number}", name=f"Tenant {number}").id for number in range(tenants)]
    weights = [1 / rank for rank in range(1, tenants)]
    shares = [0.5, *(weight / sum(weights) / 2 for weight in weights)] if tenants > 1 else [1.0]
    given = 0
    for tenant_id, until in zip(ids, accumulate(shares), strict=True):
        whole = copies if tenant_id == ids[-1] else max(given + 1, round(copies * until))
        for _ in range(given, whole):
            yield tenant_id
        given = max(given, whole)


#: Makes one heartbeat and its calls failed, and one heartbeat skipped, as most installations have a few of them.
_VARIETY = """
WITH numbered AS (SELECT tenant_id, id, row_number() OVER (ORDER BY id) AS place FROM heartbeats_heartbeat),
changed AS (
    UPDATE heartbeats_heartbeat h SET status = CASE b.place WHEN 1 THEN 'failed' ELSE 'skipped' END, reason = 'by the benchmark'
    FROM numbered b WHERE b.id = h.id AND b.tenant_id = h.tenant_id AND b.place IN (1, 2) RETURNING h.id
)
UPDATE calls_externalcall SET status = 'failed', error_kind = 'timeout', error = 'by the benchmark'
WHERE heartbeat_id IN (SELECT id FROM numbered WHERE place = 1)
"""
#: Events of the installation as a whole.
_INSTALLATION = """
INSERT INTO audit_platformevent (id, at, action, actor, message, detail)
SELECT uuidv7(-make_interval(mins => n)), now() - make_interval(mins => n), 'cross_tenant.view', 'user:bench', 'looks into', '{}'
FROM generate_series(1, %s) n
"""
_COUNTED = {
    "agents": "agents_agent",
    "tenants": "tenants_tenant",
    "heartbeats": "heartbeats_heartbeat",
    "calls": "calls_externalcall",
    "signal_batches": "signals_signalbatch",
    "memories": "memories_memory",
    "audit_events": "audit_auditevent",
}


def count_rows(database: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return the numbers of rows that the installation has, and its size."""
    counts = {
        name: fetch_value(database, f"SELECT count(*) FROM {table}") for name, table in _COUNTED.items()
    }
    size = fetch_value(database, "SELECT pg_database_size(current_database())")
    return {**counts, "database_mb": round(size / 1e6)}


# --- Pages ----------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Times:
    """The durations of one address, in milliseconds: elapsed, of statements, and the processor's.

    Processor time, of this process and the database, hardly depends on other work of the machine.
    """

    elapsed: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    database: list[float] = field(default_factory=list)
    statements: int = 0
    status: int = 0


class _Watch:
    """Sums the durations of statements, and records the slowest of each text."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.count = 0
        self.path = ""
        self.slowest: dict[str, tuple[float, str]] = {}

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Time a statement; an execute wrapper for Django."""
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            took = (time.perf_counter() - started) * 1000
            self.ms, self.count = self.ms + took, self.count + 1
            if took > self.slowest.get(sql, (0.0, ""))[0]:
                self.slowest[sql] = (took, self.path)


def measure_pages(busy: BenchAgent, addresses: Sequence[Address], *, rounds: int) -> dict[str, Any]:
    """Request pages and operations several times, and return their figures."""
    callers = _callers(busy)
    pages = [address for address in addresses if address.caller != "program"]
    operations = [address for address in addresses if address.caller == "program"]
    times: dict[Address, _Times] = defaultdict(_Times)
    watch = _Watch()
    select_one_ms = []
    for number in range(rounds + 1):
        print_progress(f"requesting {len(pages)} pages and {len(operations)} operations, round {number}")
        if number < 2:  # the first round fills caches
            times.clear()
            watch.slowest.clear()
        with _watched(watch):
            for address in pages:
                select_one_ms.append(_select_one())
                _open(callers[address.caller], address, times[address], watch)
            with override_settings(**_API):
                for address in operations:
                    _open(callers[address.caller], address, times[address], watch)
    return {"select_1_ms_p95": quantile(select_one_ms, 0.95), **_figures(times, watch)}


def _callers(busy: BenchAgent) -> Mapping[str, Client]:
    users = User.objects.using(OWNER)
    operator = users.filter(username="operator").first() or users.create(username="operator", is_staff=True)
    root = users.filter(username="root").first() or users.create(
        username="root", is_staff=True, is_superuser=True
    )
    add_member(tenant=Tenant.objects.using(OPS).get(id=busy.tenant_id), user=operator, role=Role.OPERATOR)
    with tenant_transaction(busy.tenant_id):
        token = create_token(name=f"bench {time.time_ns()}", role=Role.OWNER, actor=ACTOR).text
    callers = {
        "operator": Client(SERVER_NAME="localhost"),
        "root": Client(SERVER_NAME="localhost"),
        "program": Client(SERVER_NAME="localhost", headers={"Authorization": f"Bearer {token}"}),
    }
    callers["operator"].force_login(operator)
    callers["root"].force_login(root)
    return callers


@contextmanager
def _watched(watch: _Watch) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(override_settings(ARBOR_PAGES_PER_MINUTE=0, ARBOR_API_PER_MINUTE=0))
        for alias in (APP, OPS, ACCOUNTS):
            stack.enter_context(connections[alias].execute_wrapper(watch))
        yield


def _select_one() -> float:
    """Return the time of the shortest statement, which shows how busy the machine is."""
    started = time.perf_counter()
    with connections[OPS].cursor() as cursor:
        cursor.execute("SELECT 1")
    return (time.perf_counter() - started) * 1000


def _open(client: Client, address: Address, times: _Times, watch: _Watch) -> None:
    watch.ms, watch.count, watch.path = 0.0, 0, address.path
    started, started_cpu = time.perf_counter(), _processor_ms()
    response: Any = client.get(address.path)
    if response.streaming:
        next(iter(response.streaming_content))
    times.elapsed.append((time.perf_counter() - started) * 1000)
    times.processor.append(_processor_ms() - started_cpu)
    times.database.append(watch.ms)
    times.statements = watch.count
    times.status = response.status_code
    response.close()


def _processor_ms() -> float:
    """Return the processor time so far of this process, and of the database for its connections."""
    spent = time.process_time() * 1000
    for alias in (APP, OPS, ACCOUNTS):
        session: Any = connections[alias].connection
        if session is not None and not session.closed:
            nanoseconds = Path(f"/proc/{session.info.backend_pid}/schedstat").read_text().split()[0]
            spent += int(nanoseconds) / 1e6
    return spent


def _figures(times: Mapping[Address, _Times], watch: _Watch) -> dict[str, Any]:
    pages = [durations for address, durations in times.items() if address.caller != "program"]
    operations = [durations for address, durations in times.items() if address.caller == "program"]
    groups: dict[str, list[_Times]] = defaultdict(list)
    for address, durations in times.items():
        groups[address.group].append(durations)
    slowest = sorted(times.items(), key=lambda item: -quantile(item[1].elapsed, 0.5))
    statements = sorted(watch.slowest.items(), key=lambda item: -item[1][0])
    return {
        "pages": len(pages),
        "page_ms_p50": quantile(_all(pages), 0.5),
        "page_ms_p95": quantile(_all(pages), 0.95),
        "operations": len(operations),
        "operation_ms_p50": quantile(_all(operations), 0.5),
        "operation_ms_p95": quantile(_all(operations), 0.95),
        "processor_ms_p50": quantile(_all(pages, "processor"), 0.5),
        "processor_ms_p95": quantile(_all(pages, "processor"), 0.95),
        "above_bar": sum(quantile(durations.elapsed, 0.5) > BAR_MS for durations in times.values()),
        "refused": [
            {"status": durations.status, "page": address.path}
            for address, durations in times.items()
            if durations.status != HTTPStatus.OK
        ],
        "groups": [_line(name, members) for name, members in groups.items()],
        "slowest_pages": [
            _line(address.path, [durations]) for address, durations in slowest[:_SLOWEST_SHOWN]
        ],
        "slowest_statements": [
            {"ms": round(ms, 1), "page": path, "text": " ".join(text.split())[:_TEXT_SHOWN]}
            for text, (ms, path) in statements[:_SLOWEST_SHOWN]
        ],
    }


def _line(name: str, pages: Sequence[_Times]) -> dict[str, Any]:
    return {
        "name": name,
        "pages": len(pages),
        "p50_ms": round(quantile(_all(pages), 0.5), 1),
        "p95_ms": round(quantile(_all(pages), 0.95), 1),
        "processor_ms": round(quantile(_all(pages, "processor"), 0.5), 1),
        "database_ms": round(quantile(_all(pages, "database"), 0.5), 1),
        "statements": max(page.statements for page in pages),
    }


def _all(pages: Sequence[_Times], kind: str = "elapsed") -> list[float]:
    return [ms for page in pages for ms in getattr(page, kind)]
