"""`arbor memory`: archive, pins and quotas, candidates, forgetting, the buffer, and health."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Memory
from apps.memories.services.jobs.job_runs import expect_runs
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from config.cli.kit.output import short
from tests.factories.memories import BufferItemFactory, MemoryAccessFactory
from tests.integration.cli.conftest import Arbor, add_memory

# --- archive, restore, purge, forget -----------------------------------------------------------------


def test_a_memory_is_archived_restored_and_purged(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "The gate code is 4711.")
    assert arbor("memory", "archive", vega, chosen, "--reason", "old").out == "1 memory archived.\n"
    repeated = arbor("memory", "archive", vega, chosen, "--reason", "old")
    assert "0 memories archived; 1 was archived already" in repeated.out
    assert arbor("memory", "list", vega, "--status", "archived", "--json").json["memories"][0]["id"] == chosen
    assert "1 memory restored." in arbor("memory", "restore", vega, chosen, "--reason", "needed").out
    refused = arbor("memory", "purge", vega, chosen, "--reason", "asked", "--yes")
    assert refused.code == 1
    assert "archive memories before you remove them" in refused.err
    arbor("memory", "archive", vega, chosen, "--reason", "asked")
    declined = arbor("memory", "purge", vega, chosen, "--reason", "asked", stdin="n\n")
    assert declined.code == 130
    assert arbor("memory", "show", vega, chosen).code == 0
    assert arbor("memory", "purge", vega, chosen, "--reason", "asked", stdin="y\n").code == 0
    assert arbor("memory", "show", vega, chosen).code == 1
    with tenant_transaction(tenant_by_slug("acme").id):
        acts = list(AuditEvent.objects.filter(action__startswith="memories.").values_list("actor", flat=True))
    assert len(acts) == 4
    assert all(actor.startswith("cli:") for actor in acts)


def test_a_purge_names_the_saved_seeds_with_the_memory(arbor: Arbor, vega: str) -> None:
    def save() -> str:
        seed_id: str = arbor("seed", "save", vega, "--json").json["id"]
        return seed_id

    save()
    chosen = add_memory(arbor, "The gate code is 4711.")
    later = save()
    arbor("memory", "archive", vega, chosen, "--reason", "asked")
    purged = arbor("memory", "purge", vega, chosen, "--reason", "asked", "--yes", "--json").json
    assert (purged["purged"], purged["saved_seeds"]) == (1, [later])
    other = add_memory(arbor, "The gate code is 4712.")
    arbor("memory", "archive", vega, other, "--reason", "asked")
    assert "seed" not in arbor("memory", "purge", vega, other, "--reason", "asked", "--yes").out
    with tenant_transaction(tenant_by_slug("acme").id):
        purges = AuditEvent.objects.filter(action="memories.purged").order_by("at")
        assert [purge.detail.get("saved_seeds") for purge in purges] == [[later], None]


def test_a_memory_is_pinned_listed_and_unpinned(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "The gate code is 4711.")
    assert arbor("memory", "pin", vega, chosen, "--reason", "house rule").out == "1 memory pinned.\n"
    assert "0 memories pinned; 1 was pinned already" in arbor("memory", "pin", vega, chosen).out
    assert [row["id"] for row in arbor("memory", "list", vega, "--pinned", "--json").json["memories"]] == [
        chosen
    ]
    shown = arbor("memory", "show", vega, chosen)
    assert "pinned" in shown.out
    assert arbor("memory", "show", vega, chosen, "--json").json["pinned"]["by"].startswith("cli:")
    quotas = {row["type"]: row for row in arbor("memory", "quotas", vega, "--json").json["quotas"]}
    assert (quotas["semantic"]["pinned"], quotas["semantic"]["quota"]) == (1, 5_000)
    assert "unused pins" in arbor("memory", "quotas", vega).out
    assert arbor("memory", "unpin", vega, chosen).out == "1 memory unpinned.\n"
    assert "1 was not pinned" in arbor("memory", "unpin", vega, chosen).out


def test_candidates_show_the_missing_conditions_of_a_fact(arbor: Arbor, vega: str) -> None:
    assert "has recalled no fact yet" in arbor("memory", "candidates", vega).out
    chosen = add_memory(arbor, "The gate code is 4711.")
    with tenant_transaction(tenant_by_slug("acme").id):
        MemoryAccessFactory.create(memory=Memory.objects.get(id=chosen), count=1)
    (candidate,) = arbor("memory", "candidates", vega, "-k", "3", "--json").json["candidates"]
    assert (candidate["id"], candidate["recalled"], candidate["proposal"]) == (chosen, 1, "")
    assert "recalled 1 of 3 times" in candidate["missing"]
    assert "recalled 1 of 3" in " ".join(arbor("memory", "candidates", vega).out.split())


def test_a_reason_is_needed(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "Something.")
    for verb in ("archive", "restore", "purge"):
        assert arbor("memory", verb, vega, chosen).code == 2
    assert arbor("memory", "archive", vega, chosen, "--reason", " ").code == 1


def test_a_dry_run_of_forgetting_archives_nothing(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "A passing thing.", "episodic", "--importance", "0.01")
    with tenant_transaction(tenant_by_slug("acme").id):
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        Memory.objects.filter(id=chosen).update(created_at=long_ago, occurred_at=long_ago)
    plan = arbor("memory", "forget", vega, "--dry-run", "--json").json
    assert [memory["id"] for memory in plan["memories"]] == [chosen]
    assert sum(plan["going"].values()) == 1
    assert "would be archived" in arbor("memory", "forget", vega, "--dry-run").out
    assert arbor("memory", "forget", vega).code == 2
    with tenant_transaction(tenant_by_slug("acme").id):
        assert Memory.objects.get(id=chosen).status == "active"


# --- buffer and health -------------------------------------------------------------------------------


def test_buffer_items_are_listed(arbor: Arbor, vega: str) -> None:
    with tenant_transaction(tenant_by_slug("acme").id):
        BufferItemFactory(agent=Agent.objects.get(name=vega), content="The ferryman coughed.")
    assert [item["content"] for item in arbor("memory", "buffer", "list", vega, "--json").json["held"]] == [
        "The ferryman coughed."
    ]
    assert "The ferryman coughed." in arbor("memory", "buffer", "list", vega).out


def test_a_buffer_item_is_added_found_and_promoted(arbor: Arbor, vega: str) -> None:
    options = ("--for", "2d", "--importance", "0.2", "--json")
    cough = arbor("memory", "buffer", "add", vega, "The ferryman coughed.", *options).json["id"]
    assert (
        "Vega keeps it in the buffer for 1d."
        in arbor("memory", "buffer", "add", vega, "The lock is being mended.").out
    )
    items = arbor("memory", "buffer", "list", vega, "--search", "why did the ferryman cough?", "--json").json[
        "held"
    ]
    assert [item["id"] for item in items] == [cough]
    assert "The ferryman coughed." in arbor("memory", "buffer", "list", vega, "--search", "the ferryman").out
    nothing = arbor("memory", "buffer", "list", vega, "--search", "quantum chromodynamics")
    assert "buffer has nothing about it" in nothing.out
    assert arbor("memory", "buffer", "list", vega, "--search", " ").code == 1
    assert {item["accesses"] for item in arbor("memory", "buffer", "list", vega, "--json").json["held"]} == {
        0
    }
    memory_id = arbor("memory", "buffer", "promote", vega, short(cough), "--json").json["id"]
    assert arbor("memory", "show", vega, memory_id, "--json").json["content"] == "The ferryman coughed."
    assert [item["content"] for item in arbor("memory", "buffer", "list", vega, "--json").json["held"]] == [
        "The lock is being mended."
    ]
    unknown = arbor("memory", "buffer", "promote", vega, str(uuid4()))
    assert (unknown.code, "has no" in unknown.err) == (1, True)
    assert arbor("memory", "buffer", "add", vega, "Too long.", "--for", "99d").code == 1
    with tenant_transaction(tenant_by_slug("acme").id):
        messages = AuditEvent.objects.filter(message__startswith="added").values_list("message", flat=True)
        assert list(messages) == ["added an item to the buffer of Vega"] * 2
        assert AuditEvent.objects.filter(message="promoted a buffer item to a memory").count() == 1


def test_health_is_shown(arbor: Arbor, vega: str) -> None:
    ran = arbor("memory", "health")
    assert "stale neighborhoods" in ran.out
    assert ran.code == 0
    assert arbor("memory", "health", "--json").json["figures"]
    expect_runs({"arbor.decay.fade": 60})
    assert "never" in arbor("memory", "health").out
