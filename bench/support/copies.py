"""Copy the agents of a tenant many times by SQL: each copy has ids, times and a tenant of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from apps.tenants.packing import sql_literal
from bench.support.database import fetch_value
from bench.support.figures import print_progress

#: Tables whose rows belong to a tenant as a whole, and tables that would only be large.
_NOT_COPIED = (
    "access_%",
    "agents_template",
    "calls_tokenratio",
    "contacts_channel",
    "contacts_signalwebhook",
    "heartbeats_spanexport",
    "memories_embeddingcache%",
    "memories_term",
    "tenants_%",
)
#: Tables in which an agent gets more rows the longer it lives.
_GROWING = (
    "audit_auditevent",
    "calls_externalcall",
    "calls_ledgerentry",
    "heartbeats_heartbeat",
    "heartbeats_percept",
    "memories_memory",
    "memories_upkeep",
    "signals_signalbatch",
)
#: Copies that one statement makes.
_TOGETHER = 500

# The rows of each round of heartbeats are moved into an hour of their own, and all rows of a copy back by `back`.
_FUNCTIONS = """
CREATE OR REPLACE FUNCTION pg_temp.moved(at timestamptz, back interval) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT at - back - make_interval(hours => {rounds} - width_bucket(at, '{bounds}'::timestamptz[]))
$$;
CREATE OR REPLACE FUNCTION pg_temp.millis(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
$$;
CREATE OR REPLACE FUNCTION pg_temp.copied(id uuid, salt text, back interval) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN substr(id::text, 15, 1) = '7'
        THEN (pg_temp.millis(pg_temp.moved(uuid_extract_timestamp(id), back)) || '7' || left(md5(id::text || salt), 19))::uuid
        ELSE md5(id::text || salt)::uuid END
$$;
CREATE TEMP TABLE IF NOT EXISTS bench_copy
    (number int, tenant_id uuid, salt text, back interval, agent_salt text, agent_back interval, remembers boolean, is_long boolean);
"""
_COLUMNS = """
SELECT c.relname, a.attname, a.atttypid::regtype::text, a.attnotnull, EXISTS (
    SELECT FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' AND a.attnum = ANY(f.conkey)
        AND f.confrelid::regclass::text LIKE 'memories_%%' AND a.attname <> 'tenant_id')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND NOT c.relname LIKE ANY(%s)
    AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
ORDER BY c.relname, a.attnum
"""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A copy of the original agents: its tenant, and whether it has the originals' memories too."""

    number: int
    tenant_id: UUID
    remembers: bool


@dataclass(frozen=True, kw_only=True)
class _Column:
    name: str
    type: str
    required: bool
    of_memory: bool


class Copier:
    """Copies the agents of one tenant, which have lived in rounds that began at `bounds`."""

    def __init__(
        self, database: psycopg.Connection[Any], *, tenant_id: UUID, bounds: Sequence[datetime]
    ) -> None:
        """Create the functions that move times and ids; they exist in this session only."""
        self._database = database
        self._tenant_id = tenant_id
        self._rounds = len(bounds)
        moments = ",".join(f'"{bound.isoformat()}"' for bound in bounds)
        database.execute(_FUNCTIONS.format(rounds=self._rounds, bounds=f"{{{moments}}}"))
        # No triggers: references to rows that are copied later would be refused.
        database.execute("SET session_replication_role = replica")
        self._position = self._latest_position()
        self._tables: dict[str, list[_Column]] = {}
        for table, name, kind, required, of_memory in database.execute(_COLUMNS, [list(_NOT_COPIED)]):
            column = _Column(name=name, type=kind, required=required, of_memory=of_memory)
            self._tables.setdefault(table, []).append(column)

    def copy(self, copies: Sequence[Copy]) -> None:
        """Copy all agents with their rows, the times of each copy moved back by another part of an hour."""
        for start in range(0, len(copies), _TOGETHER):
            print_progress(f"  {start} of {len(copies)} copies")
            part = copies[start : start + _TOGETHER]
            self._plan(
                [
                    (copy.number, copy.tenant_id, str(copy.number), _spread(copy.number), copy.remembers)
                    for copy in part
                ]
            )
            for table in self._tables:
                self._insert(table)

    def lengthen(self, agent_id: UUID, copy: Copy, lives: int) -> None:
        """Add the heartbeats, calls and memories of an original agent to its copy `lives` times, each time further back."""
        for start in range(1, lives + 1, _TOGETHER):
            self._plan(
                [
                    (copy.number, copy.tenant_id, f"{copy.number}-{life}", _spread(copy.number), True)
                    for life in range(start, min(start + _TOGETHER, lives + 1))
                ]
            )
            self._database.execute(
                "UPDATE bench_copy SET is_long = true, back = back + split_part(salt, '-', 2)::int * %s * interval '1 hour'",
                [self._rounds],
            )
            for table in _GROWING:
                self._insert(table, of=agent_id)

    def copied_id(self, original: UUID, copy: Copy) -> UUID:
        """Return the id of the copy of a row."""
        found: UUID = fetch_value(
            self._database,
            "SELECT pg_temp.copied(%s, %s, make_interval(secs => %s))",
            [original, str(copy.number), _spread(copy.number)],
        )
        return found

    def _plan(self, rows: Collection[tuple[Any, ...]]) -> None:
        self._database.execute("TRUNCATE bench_copy")
        with self._database.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO bench_copy SELECT %s, %s, %s, back, split_part(%s, '-', 1), back, %s, false"
                " FROM make_interval(secs => %s) AS back",
                [
                    (number, tenant_id, salt, salt, remembers, back)
                    for number, tenant_id, salt, back, remembers in rows
                ],
            )
        self._database.execute("ANALYZE bench_copy")

    def _insert(self, table: str, *, of: UUID | None = None) -> None:
        columns = self._tables[table]
        needs_memory = table.startswith("memories_") or any(
            column.of_memory and column.required for column in columns
        )
        values = ", ".join(self._value(table, column) for column in columns)
        names = ", ".join(f'"{column.name}"' for column in columns)
        self._database.execute(
            f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} o CROSS JOIN bench_copy c"
            f" WHERE o.tenant_id = %(tenant)s{' AND c.remembers' if needs_memory else ''}"
            f"{' AND o.agent_id = %(agent)s' if of else ''} ON CONFLICT DO NOTHING",
            {"tenant": self._tenant_id, "agent": of},
        )

    def _value(self, table: str, column: _Column) -> str:
        name = f'o."{column.name}"'
        if (table, column.name) in _WIDE:
            return f"CASE WHEN c.remembers THEN {name} ELSE {sql_literal({})} END"
        own = _OWN_VALUES.get((table, column.name))
        if own:
            return own.format(position=self._position)
        match column.name, column.type:
            case "tenant_id", _:
                return "c.tenant_id"
            case "agent_id", "uuid":
                return f"pg_temp.copied({name}, c.agent_salt, c.agent_back)"
            case _, "uuid":
                copied = f"pg_temp.copied({name}, c.salt, c.back)"
                return f"CASE WHEN c.remembers THEN {copied} END" if column.of_memory else copied
            case _, "timestamp with time zone":
                return f"pg_temp.moved({name}, c.back)"
            case _:
                return name

    def _latest_position(self) -> str:
        return str(fetch_value(self._database, "SELECT left(replace(signals_row_id(0)::text, '-', ''), 16)"))


#: Stored outside of their rows, so that no list reads them, and half of the database: only copies with memories have them.
_WIDE = {("calls_externalcall", "request"), ("heartbeats_heartbeat", "situation")}
#: Values of columns that are unique in a tenant, or ordered otherwise than ids by time.
_OWN_VALUES: Mapping[tuple[str, str], str] = {
    ("agents_agent", "name"): "o.name || ' ' || c.number",
    ("agents_agent", "public_id"): "'agent_' || md5(o.public_id || c.salt) || md5(c.salt)",
    ("contacts_outboxmessage", "idempotency_key"): "o.idempotency_key || ' ' || c.number",
    ("memories_memory", "session"): "CASE WHEN c.is_long THEN 'life ' || c.salt ELSE o.session END",
    (
        "memories_memory",
        "episode_id",
    ): "CASE WHEN NOT c.is_long THEN pg_temp.copied(o.episode_id, c.salt, c.back) END",
    (
        "signals_signalbatch",
        "id",
    ): "('{position}' || pg_temp.millis(pg_temp.moved(o.at, c.back)) || left(md5(o.id::text || c.salt), 4))::uuid",
}


def _spread(number: int) -> float:
    """Return the seconds of an hour by which a copy is moved back, evenly spread over any number of copies."""
    return number * 0.618034 % 1 * 3600
