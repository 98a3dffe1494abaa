"""Migrate a database with rows of two tenants from an earlier version: no row is lost, and the tables are those of a new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections

from apps.agents.models import Agent, AgentState
from apps.calls.models import ExternalCall, LedgerEntry
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.reports.digests import AS_SEALED, DIGESTS, digest_heartbeats
from apps.memories.models import BufferItem, Edge, Episode, Memory, Upkeep
from apps.memories.services.jobs.reindexing import reindex_words
from apps.memories.services.jobs.remembered_summaries import remember_summaries
from apps.memories.services.recall.recaller import recall
from apps.selves.models import Belief, IdentityAspect, PeerModel, SelfChange
from apps.selves.services.history import birth_self_of
from apps.selves.services.self_knowledge import system_prompt_of
from apps.tenants.checks import find_table_faults
from apps.tenants.scope import OWNER, tenant_transaction
from arbor.heartbeat.results import complete_entry
from arbor.memory.recall.recall_request import RecallRequest
from arbor.selves.history import PartKind
from config.servers.postgres import EmbeddedPostgres
from tests.integration.tenancy.test_protection import CATALOG
from tests.support.earlier_rows import HEARTBEAT_COLUMNS, REPLY, STATE, EarlierTenant, create_rows
from tests.support.upgrade import Rows, empty_database, migrate_to, protect_as, read_rows

#: The last migrations of the version that squashed the earlier ones.
EARLIER = (
    ("tenants", "0001_squashed"),
    ("audit", "0001_squashed"),
    ("agents", "0002_schedules_moved"),
    ("memories", "0001_squashed"),
    ("goals", "0001_squashed"),
    ("selves", "0001_squashed"),
    ("calls", "0001_calls"),
    ("heartbeats", "0003_schedules_moved"),
    ("contacts", "0001_squashed"),
)
STRUCTURE = (
    CATALOG.removesuffix(" ORDER BY 1, 2, 3, 4, 5, 6")
    + " UNION ALL SELECT 'index', indexname, true, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'"
    " UNION ALL SELECT 'trigger', tgname, true, pg_get_triggerdef(oid), '', '' FROM pg_trigger WHERE NOT tgisinternal"
    " ORDER BY 1, 2, 3, 4, 5, 6"
)
#: Columns that the migrations change in rows that exist: the memories of birth, and beliefs that were values.
CHANGED = {
    ("memories_memory", "retention"),
    ("memories_memory", "revision"),
    # Become grants.
    ("agents_agent", "allowed_actions"),
    ("selves_belief", "category"),
    ("selves_belief", "status"),
    # Are stored packed.
    *(("agents_agentstate", column) for column in STATE),
    ("calls_externalcall", "reply"),
    *(("heartbeats_heartbeat", column) for column in HEARTBEAT_COLUMNS),
}
#: Tables that the migrations add rows to: traits and values, and the record of each birth.
GROWN = {"selves_identityaspect", "selves_selfchange"}


@dataclass(frozen=True, kw_only=True)
class Upgrade:
    """Rows and structure before and after the migrations."""

    tenants: tuple[EarlierTenant, EarlierTenant]
    #: Of the heartbeat of each tenant, as the earlier version computed them.
    digests: list[bytes]
    before: Rows
    after: Rows
    structure: list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def fresh_structure(django_db_setup: None, postgres: EmbeddedPostgres) -> list[tuple[Any, ...]]:
    """Return the structure of a database that was never migrated from an earlier version."""
    with psycopg.connect(postgres.superuser_url) as session:
        return session.execute(STRUCTURE).fetchall()


@pytest.fixture(scope="module")
def upgrade(django_db_setup: None, postgres: EmbeddedPostgres, django_db_blocker: Any) -> Iterator[Upgrade]:
    """Migrate a database with rows of two tenants; while it is in use, all roles are connected to it."""
    with django_db_blocker.unblock(), empty_database(postgres, name="upgraded") as url:
        earlier = migrate_to(*EARLIER)
        tenants = (create_rows(earlier, "acme"), create_rows(earlier, "globex"))
        protect_as(earlier)
        with psycopg.connect(url, autocommit=True) as session:
            before = read_rows(session)
            digests = [_earlier_digest(session, old) for old in tenants]
            call_command("migrate", verbosity=0)
            yield Upgrade(
                tenants=tenants,
                digests=digests,
                before=before,
                after=read_rows(session),
                structure=session.execute(STRUCTURE).fetchall(),
            )


def _earlier_digest(session: psycopg.Connection[Any], old: EarlierTenant) -> bytes:
    """Return the digest of a heartbeat whose actions and changes of goals are jsonb."""
    statement = DIGESTS
    for column in HEARTBEAT_COLUMNS:
        packed = AS_SEALED.format(column=column)
        assert packed in statement
        statement = statement.replace(packed, f"h.{column}")
    row = session.execute(statement, {"tenant": old.tenant, "ids": [old.heartbeat]}).fetchone()
    assert row is not None
    return bytes(row[2])


def test_an_upgraded_database_has_the_structure_of_a_new_one(
    fresh_structure: list[tuple[Any, ...]], upgrade: Upgrade
) -> None:
    assert len(fresh_structure) > 500
    assert upgrade.structure == fresh_structure
    assert find_table_faults() == []


def test_rows_of_an_upgraded_database_are_those_from_before(upgrade: Upgrade) -> None:
    assert sum(map(len, upgrade.before.values())) > 50
    assert upgrade.after.keys() >= upgrade.before.keys()
    for table, rows in upgrade.before.items():
        changed = {column for name, column in CHANGED if name == table}
        as_before = [
            {column: value for column, value in row.items() if column in rows[0] and column not in changed}
            for row in upgrade.after[table]
            if table not in GROWN or row["id"] in {earlier["id"] for earlier in rows}
        ]
        earlier = [{column: value for column, value in row.items() if column not in changed} for row in rows]
        assert sorted(map(str, as_before)) == sorted(map(str, earlier)), table


def test_new_columns_of_an_upgraded_database_have_values(upgrade: Upgrade) -> None:
    for old in upgrade.tenants:
        with tenant_transaction(old.tenant):
            assert Memory.objects.get(id=old.innate).retention == "permanent"
            assert Memory.objects.get(id=old.lesson).retention == "lasting"
            assert set(Episode.objects.values_list("remembered", flat=True)) == {False}
            assert set(Upkeep.objects.values_list("unindexed", flat=True)) == {True}
            assert set(BufferItem.objects.values_list("trust", flat=True)) == {1.0}
            assert Edge.objects.filter(relation="contradicts").count() == 1
            peers = PeerModel.objects.values_list("is_agent", "peer_id", "interactions")
            assert {(agent, peer is None, times) for agent, peer, times in peers} == {
                (True, False, 4),
                (False, True, 2),
                (False, True, 0),
            }
            assert SelfChange.objects.filter(reason="").count() == 2


def test_values_of_an_upgraded_database_are_packed(upgrade: Upgrade) -> None:
    for old in upgrade.tenants:
        with tenant_transaction(old.tenant):
            assert AgentState.objects.filter(agent_id=old.agent).values(*STATE).get() == STATE
            assert ExternalCall.objects.get(id=old.call).reply == REPLY
            heartbeat = Heartbeat.objects.get(id=old.heartbeat)
            assert heartbeat.goal_changes == HEARTBEAT_COLUMNS["goal_changes"]
            assert heartbeat.actions == [complete_entry(entry) for entry in HEARTBEAT_COLUMNS["actions"]]


def test_heartbeats_of_an_upgraded_database_have_their_digests(upgrade: Upgrade) -> None:
    for old, digest in zip(upgrade.tenants, upgrade.digests, strict=True):
        with tenant_transaction(old.tenant):
            assert digest_heartbeats([old.heartbeat])[old.heartbeat].digest == digest


def test_values_of_an_upgraded_database_are_aspects(upgrade: Upgrade) -> None:
    for old in upgrade.tenants:
        with tenant_transaction(old.tenant):
            aspects = IdentityAspect.objects.filter(agent_id=old.agent).order_by("id")
            assert list(aspects.values_list("kind", "content", "strength", "stability", "status")) == [
                ("value", "tea", 0.5, 0.5, "held"),
                ("trait", "dry", 0.3, 0.8, "held"),
                ("value", "candor", 0.7, 0.6, "held"),
                ("value", "finishing", 0.9, 0.8, "held"),
                ("value", "rest", 0.4, 0.8, "dropped"),
                ("value", "proof", 0.9, 0.8, "held"),
            ]
            beliefs = Belief.objects.order_by("statement").values_list("statement", "category", "status")
            # A belief with evidence, or of another category, is still one.
            assert list(beliefs) == [
                ("Fords move.", "world", "questioned"),
                ("candor", "self", "dropped"),
                ("proof", "self", "held"),
                ("rest", "self", "dropped"),
            ]
            prompt = system_prompt_of(Agent.objects.get(id=old.agent))
            assert "- dry (low)" in prompt
            assert all(f"- {value}\n" in prompt for value in ("tea", "candor", "finishing", "proof"))


def test_history_of_an_upgraded_database_begins_with_births(upgrade: Upgrade) -> None:
    old = upgrade.tenants[0]
    with tenant_transaction(old.tenant):
        changes = SelfChange.objects.filter(agent_id=old.agent).order_by("version")
        assert list(changes.values_list("version", "what")) == [(1, "birth"), (2, "aspect"), (3, "belief")]
        birth = birth_self_of(old.agent)
        beliefs = {values["statement"]: values for values in birth.of(PartKind.BELIEF).values()}
        assert beliefs.keys() == {"Fords move.", "proof"}
        assert (beliefs["Fords move."]["status"], beliefs["Fords move."]["confidence"]) == ("held", 0.9)
        values = {values["content"] for values in birth.of(PartKind.ASPECT).values()}
        assert values == {"tea", "dry", "candor", "finishing", "proof"}


def test_entries_of_an_upgraded_ledger_outlive_their_calls(upgrade: Upgrade) -> None:
    with connections[OWNER].cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'calls_ledgerentry_call_id_in_tenant'"
        )
        assert cursor.fetchone()[0].endswith("ON DELETE SET NULL (call_id)")
    old = upgrade.tenants[0]
    with tenant_transaction(old.tenant):
        ExternalCall.objects.get(id=old.call).delete()
        assert LedgerEntry.objects.get().call_id is None


def test_maintenance_completes_memories_of_an_old_version(upgrade: Upgrade) -> None:
    assert reindex_words().failed == remember_summaries().failed == 0
    for old in upgrade.tenants:
        with tenant_transaction(old.tenant):
            assert not Upkeep.objects.filter(unindexed=True).exists()
            assert Memory.objects.filter(content__contains="ferry and its fords").count() == 1
        for words, expected in (("read the tide table", "Cross at low tide."), ("candor", "I value candor")):
            found = recall(tenant_id=old.tenant, request=RecallRequest(agent_id=old.agent, text=words))
            assert expected in [memory.content for memory in found]
