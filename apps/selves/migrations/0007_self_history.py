"""Give traits and values one home, and each change of a self a version; the first version is the birth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from arbor.ids import uuid7
from arbor.memory.content import content_hash

_BATCH = 500
_STABILITY = 0.8
_VALUE_STRENGTH = 0.9
_TABLES = (
    "agents_agent",
    "memories_edge",
    "selves_belief",
    "selves_beliefevidence",
    "selves_boundary",
    "selves_identityaspect",
    "selves_preference",
    "selves_proposal",
    "selves_selfchange",
)
_AGENTS = """
SELECT tenant_id, id, character, template_name, created_at FROM agents_agent
WHERE id > coalesce(%s, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT %s
"""
_ASPECTS = """
SELECT agent_id, id, kind, content, content_hash, strength, stability, status FROM selves_identityaspect
WHERE agent_id = ANY(%s) ORDER BY id
"""
# A belief with evidence, filters, relations or a proposal about it stays a belief.
_BELIEFS = """
SELECT b.agent_id, b.id, b.category, b.statement, b.statement_hash, b.confidence, b.stability, b.status, b.source, b.filters,
    b.created_at, b.updated_at,
    b.filters <> '[]'
        OR EXISTS (SELECT FROM selves_beliefevidence e WHERE e.tenant_id = b.tenant_id AND e.belief_id = b.id)
        OR EXISTS (SELECT FROM memories_edge e WHERE e.tenant_id = b.tenant_id AND e.agent_id = b.agent_id
            AND b.id IN (e.source_id, e.target_id))
        OR EXISTS (SELECT FROM selves_proposal p WHERE p.tenant_id = b.tenant_id AND p.agent_id = b.agent_id
            AND p.status = 'pending' AND p.change->>'belief' = b.id::text) AS used
FROM selves_belief b WHERE b.agent_id = ANY(%s) ORDER BY b.id
"""
_PREFERENCES = "SELECT agent_id, id, key, value FROM selves_preference WHERE agent_id = ANY(%s)"
_BOUNDARIES = """
SELECT agent_id, id, name, description, type, response, patterns, examples, flexibility, importance, enabled
FROM selves_boundary WHERE agent_id = ANY(%s)
"""
_CHANGES = """
SELECT agent_id, what, target_id, before FROM selves_selfchange WHERE agent_id = ANY(%s) AND version > 0
ORDER BY agent_id, version
"""
_NUMBER = """
UPDATE selves_selfchange c SET version = numbered.position + 1 FROM (
    SELECT id, row_number() OVER (PARTITION BY tenant_id, agent_id ORDER BY at, id) AS position FROM selves_selfchange
) numbered WHERE numbered.id = c.id
"""
_ADD_ASPECT = """
INSERT INTO selves_identityaspect
    (tenant_id, agent_id, id, kind, content, content_hash, strength, stability, status, source, created_at, updated_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_ADD_BIRTH = """
INSERT INTO selves_selfchange
    (tenant_id, agent_id, id, version, what, target_id, before, after, decided_by, reason, at)
VALUES (%s, %s, %s, 1, 'birth', %s, '{}', %s::jsonb, 'system:upgrade', 'birth, as far as it is recorded', %s)
"""
_MOVE_BELIEFS = """
UPDATE selves_belief SET category = 'self', status = CASE WHEN id = ANY(%s) THEN status ELSE 'dropped' END WHERE id = ANY(%s)
"""
_BACK = """
DELETE FROM selves_selfchange WHERE what = 'birth';
UPDATE selves_belief b SET category = 'values', status = v.status FROM selves_identityaspect v
WHERE v.tenant_id = b.tenant_id AND v.agent_id = b.agent_id AND v.kind = 'value' AND v.content_hash = b.statement_hash
    AND b.category = 'self';
DELETE FROM selves_identityaspect v USING selves_identityaspect o
WHERE v.kind = 'value' AND o.kind <> 'value' AND o.tenant_id = v.tenant_id AND o.agent_id = v.agent_id
    AND o.content_hash = v.content_hash;
DELETE FROM selves_identityaspect WHERE kind IN ('trait', 'capability');
"""


@contextmanager
def _unforced(cursor: Any) -> Iterator[None]:
    """Let the owner of the tables pass row-level security, which it does only while this is not forced."""
    cursor.execute(
        "SELECT relname::text FROM pg_class WHERE relforcerowsecurity AND relname = ANY(%s)"
        " AND relnamespace = 'public'::regnamespace",
        [list(_TABLES)],
    )
    forced = [name for (name,) in cursor.fetchall()]
    for table in forced:
        cursor.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    yield
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for table in forced:
        cursor.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def _choices(names: str) -> list[tuple[str, str]]:
    return [(name, name) for name in names.split()]


def give_one_home(_apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
    """Number all changes, then store traits, values and births, some agents at a time."""
    with editor.connection.cursor() as cursor, _unforced(cursor):
        cursor.execute(_NUMBER)
        last = None
        while agents := _rows(cursor, _AGENTS, [last, _BATCH]):
            _give_some_one_home(cursor, agents)
            last = agents[-1]["id"]


def take_back(_apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
    """Give the values of beliefs back to these, and delete what the earlier version does not know."""
    with editor.connection.cursor() as cursor, _unforced(cursor):
        cursor.execute(_BACK)


def _give_some_one_home(cursor: Any, agents: list[dict[str, Any]]) -> None:
    ids = [agent["id"] for agent in agents]
    aspects, beliefs = _by_agent(cursor, _ASPECTS, ids), _by_agent(cursor, _BELIEFS, ids)
    preferences, boundaries = _by_agent(cursor, _PREFERENCES, ids), _by_agent(cursor, _BOUNDARIES, ids)
    changes = _by_agent(cursor, _CHANGES, ids)
    added: list[list[Any]] = []
    births: list[list[Any]] = []
    moved: list[Any] = []
    staying: list[Any] = []
    for agent in agents:
        own, of_values = agent["id"], []
        for belief in beliefs.get(own, []):
            if belief["category"] == "values":
                of_values.append(belief)
                moved.append(belief["id"])
                if belief["used"]:
                    staying.append(belief["id"])
        new = _qualities(agent, of_values, aspects.get(own, []))
        added += [[agent["tenant_id"], own, *aspect.values()] for aspect in new]
        now = {
            "aspect": {row["id"]: _aspect_values(row) for row in [*aspects.get(own, []), *new]},
            "belief": {
                row["id"]: _belief_values(row)
                for row in beliefs.get(own, [])
                if row["category"] != "values" or row["used"]
            },
            "preference": {row["id"]: _named(row, "key", "value") for row in preferences.get(own, [])},
            "boundary": {
                row["id"]: {name: value for name, value in row.items() if name not in ("agent_id", "id")}
                for row in boundaries.get(own, [])
            },
        }
        birth = json.dumps(_before(now, changes.get(own, []), set(moved)))
        births.append([agent["tenant_id"], own, uuid7(), own, birth, agent["created_at"]])
    cursor.executemany(_ADD_ASPECT, added)
    cursor.executemany(_ADD_BIRTH, births)
    cursor.execute(_MOVE_BELIEFS, [staying, moved])


def _qualities(
    agent: dict[str, Any], beliefs: list[dict[str, Any]], aspects: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the new aspects of an agent: traits and values of its character, and values that were beliefs."""
    known = {(aspect["kind"], bytes(aspect["content_hash"])) for aspect in aspects}
    character = agent["character"] or {}
    by_hash = {bytes(belief["statement_hash"]): belief for belief in beliefs}
    new: dict[tuple[str, bytes], dict[str, Any]] = {}

    def add(kind: str, text: str, strength: float, belief: dict[str, Any] | None = None) -> None:
        key = (kind, content_hash(text))
        if key in known or key in new:
            return
        origin = belief or {}
        new[key] = {
            "id": uuid7(),
            "kind": kind,
            "content": text,
            "content_hash": key[1],
            "strength": strength,
            "stability": origin.get("stability", _STABILITY),
            "status": origin.get("status", "held"),
            "source": origin.get("source", f"template:{agent['template_name']}"),
            "created_at": origin.get("created_at", agent["created_at"]),
            "updated_at": origin.get("updated_at", agent["created_at"]),
        }

    for trait in character.get("traits", ()):
        add("trait", trait["name"], trait["intensity"])
    for value in character.get("values", ()):
        belief = by_hash.get(content_hash(value))
        add("value", value, belief["confidence"] if belief else _VALUE_STRENGTH, belief)
    for belief in beliefs:
        add("value", belief["statement"], belief["confidence"], belief)
    return list(new.values())


def _before(
    now: dict[str, dict[Any, dict[str, Any]]], changes: list[dict[str, Any]], moved: set[Any]
) -> dict[str, dict[str, Any]]:
    """Return the parts before all recorded changes, which are undone from the last to the first."""
    for change in reversed(changes):
        rows = now.get(change["what"])
        if rows is None or change["what"] == "belief" and change["target_id"] in moved:
            continue
        if change["before"]:
            rows[change["target_id"]] = {**rows.get(change["target_id"], {}), **change["before"]}
        else:
            rows.pop(change["target_id"], None)
    return {
        what: kept
        for what, rows in now.items()
        if (kept := {str(target): row for target, row in rows.items() if row.get("status") != "dropped"})
    }


def _aspect_values(row: dict[str, Any]) -> dict[str, Any]:
    return _named(row, "kind", "content", "strength", "stability", "status")


def _belief_values(row: dict[str, Any]) -> dict[str, Any]:
    values = _named(row, "statement", "confidence", "stability", "status")
    values["category"] = "self" if row["category"] == "values" else row["category"]
    return values | ({"filters": row["filters"]} if row["filters"] else {})


def _named(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _rows(cursor: Any, statement: str, values: list[Any]) -> list[dict[str, Any]]:
    cursor.execute(statement, values)
    names = [column.name for column in cursor.description]
    return [
        {
            # Django registers no loader for jsonb.
            name: json.loads(value) if name in _JSON and isinstance(value, str) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in cursor.fetchall()
    ]


_JSON = frozenset({"character", "filters", "patterns", "examples", "before"})


def _by_agent(cursor: Any, statement: str, ids: list[Any]) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in _rows(cursor, statement, [ids]):
        found.setdefault(row["agent_id"], []).append(row)
    return found


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0007_percepts_by_agent"),
        ("memories", "0007_buffer_by_memory"),
        ("selves", "0006_action_names"),
        ("tenants", "0004_default_model"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="identityaspect", name="selves_identityaspect_once"),
        migrations.AddField(
            model_name="identityaspect", name="strength", field=models.FloatField(db_default=0.5, default=0.5)
        ),
        migrations.AddField(
            model_name="selfchange",
            name="version",
            field=models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="belief",
            name="category",
            field=models.CharField(choices=_choices("self others world time causality"), max_length=16),
        ),
        migrations.AlterField(
            model_name="identityaspect",
            name="kind",
            field=models.CharField(
                choices=_choices(
                    "self_concept agency purpose value emotional_baseline threat_sensitivity change_resistance trait"
                    " capability"
                ),
                max_length=24,
            ),
        ),
        migrations.AlterField(model_name="selfchange", name="what", field=models.CharField(max_length=16)),
        migrations.RunPython(give_one_home, take_back),
        migrations.AddConstraint(
            model_name="identityaspect",
            constraint=models.UniqueConstraint(
                fields=("tenant", "agent", "kind", "content_hash"), name="selves_identityaspect_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="identityaspect",
            constraint=models.CheckConstraint(
                condition=models.Q(("strength__gte", 0), ("strength__lte", 1)),
                name="selves_identityaspect_strength",
            ),
        ),
        migrations.AddConstraint(
            model_name="selfchange",
            constraint=models.UniqueConstraint(
                fields=("tenant", "agent", "version", "what", "target_id"), name="selves_change_once"
            ),
        ),
    ]
