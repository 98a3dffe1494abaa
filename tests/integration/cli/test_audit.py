"""`arbor audit`: list, search, show, export, verify, head."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.audit.models import AuditAction
from apps.audit.services import record, record_platform
from apps.fleet.audit_heads import HeadFile
from apps.fleet.audit_seals import seal_audit
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from config.cli.checks.audit import check_audit
from config.cli.checks.finding import CheckVerdict
from tests.integration.cli.conftest import Arbor, CommandResult


@pytest.fixture
def audited_tenant(one_tenant: str, settings: Any) -> Tenant:
    """Return the only tenant, with three acts; jobs run without the pauses between their steps."""
    settings.ARBOR_MAINTENANCE_SHARE = 1.0
    tenant: Tenant = Tenant.objects.using("ops").get()
    for action, actor, message in (
        (AuditAction.OPERATOR_ACT, "user:nora", "raised the daily limit of Vega"),
        (AuditAction.TRUNCATED, "agent:agent_1", "cut 300 tokens off the prompt"),
        (AuditAction.OPERATOR_ACT, "cli:ada", "lowered the daily limit of Lyra to 50%"),
    ):
        with tenant_transaction(tenant.id):
            record(action=action, actor=actor, message=message)
    return tenant


def message_starts(ran: CommandResult) -> list[str]:
    """Return the first six characters of each listed message but that of the tenant's creation."""
    assert ran.code == 0, ran.err
    return [event["message"][:6] for event in ran.json["events"] if event["action"] != "tenant.created"]


def test_acts_are_listed_and_filtered(arbor: Arbor, audited_tenant: Tenant) -> None:
    assert message_starts(arbor("audit", "list", "--json")) == ["lowere", "cut 30", "raised"]
    serious = arbor("audit", "list", "--level", "warning", "--level", "error", "--json")
    assert message_starts(serious) == ["cut 30"]
    assert message_starts(arbor("audit", "list", "--actor", "user:", "--json")) == ["raised"]
    recent = arbor("audit", "list", "--action", "operator.act", "--since", "1h", "--json")
    assert message_starts(recent) == ["lowere", "raised"]
    assert message_starts(arbor("audit", "list", "--until", "2020-01-01T00:00Z", "--json")) == []
    assert "there is no act 'policy'" in arbor("audit", "list", "--action", "policy").err


def test_a_page_of_acts_is_continued(arbor: Arbor, audited_tenant: Tenant) -> None:
    first = arbor("audit", "list", "--limit", "1", "--json").json["events"][0]["id"]
    later = arbor("audit", "list", "--limit", "1", "--before", first, "--json")
    assert message_starts(later) == ["cut 30"]
    assert "more with --before" in arbor("audit", "list", "--limit", "1").err
    events = arbor("audit", "list", "--json").json["events"]
    whole = arbor("audit", "list", "--limit", str(len(events)))
    assert (whole.code, whole.err) == (0, "")


def test_messages_are_searched_by_all_words(arbor: Arbor, audited_tenant: Tenant) -> None:
    assert message_starts(arbor("audit", "search", "LIMIT daily", "--json")) == ["lowere", "raised"]
    assert message_starts(arbor("audit", "search", "%", "--json")) == ["lowere"]
    narrowed = arbor(
        *("audit", "search", "limit", "--actor", "cli:", "--action", "operator.act", "--level", "info"),
        *("--since", "1h", "--until", "2100-01-01T00:00Z", "--limit", "5", "--json"),
    )
    assert message_starts(narrowed) == ["lowere"]
    newest = narrowed.json["events"][0]["id"]
    assert message_starts(arbor("audit", "search", "limit", "--before", newest, "--json")) == ["raised"]


def test_acts_are_filtered_by_agent(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    listed = arbor("audit", "list", "--agent", "Vega", "--json")
    assert [event["action"] for event in listed.json["events"]] == ["agent.created"]
    searched = arbor("audit", "search", "vega", "--agent", "Vega", "--json")
    assert searched.json["events"] == listed.json["events"]
    path = tmp_path / "audit.jsonl"
    ran = arbor(
        *("audit", "export", str(path), "--agent", "Vega", "--action", "agent.created", "--level", "info"),
        *("--since", "1h", "--until", "2100-01-01T00:00Z"),
    )
    assert ran.code == 0, ran.err
    assert [json.loads(line)["action"] for line in path.read_text().splitlines()] == ["agent.created"]


def test_an_act_is_shown_with_its_detail(arbor: Arbor, audited_tenant: Tenant) -> None:
    first = arbor("audit", "list", "--limit", "1", "--json").json["events"][0]
    shown = arbor("audit", "show", first["id"], "--json")
    assert shown.json["message"] == "lowered the daily limit of Lyra to 50%"
    assert "cli:ada" in arbor("audit", "show", first["id"]).out
    assert "there is no audit record" in arbor("audit", "show", str(audited_tenant.id)).err


def test_an_export_has_a_line_for_each_act_and_is_audited(
    arbor: Arbor, audited_tenant: Tenant, tmp_path: Path
) -> None:
    path = tmp_path / "audit.jsonl"
    assert arbor("audit", "export", str(path), "--actor", "user:", "--words", "limit").code == 0
    (line,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert (line["message"], line["level"]) == ("raised the daily limit of Vega", "info")
    exported = arbor("audit", "list", "--action", "audit.exported", "--json").json["events"]
    assert exported[0]["detail"] == {"actor": "user:", "words": "limit"}
    assert len(arbor("audit", "export").out.splitlines()) >= 4


def test_a_chain_is_verified_and_its_first_broken_link_named(
    arbor: Arbor, audited_tenant: Tenant, superuser: psycopg.Connection[Any], tmp_path: Path
) -> None:
    unsealed = arbor("audit", "verify", "--json")
    assert unsealed.json["chains"][0]["unsealed_events"] >= 3
    assert "Nothing is sealed yet" in arbor("audit", "head").out
    record_platform(action=AuditAction.OPERATOR_ACT, actor="cli:ada", message="opened the house")
    heads = tmp_path / "heads.jsonl"
    seal_audit(sinks=[HeadFile(heads)])
    ran = arbor("audit", "verify", "--all", "--heads", str(heads), "--json")
    assert (ran.code, ran.json["intact"]) == (0, True)
    assert [chain["tenant"] for chain in ran.json["chains"]] == [audited_tenant.slug, None]
    head = arbor("audit", "head", "--json").json["heads"][0]
    assert (head["chain"], head["number"]) == (str(audited_tenant.id), 1)
    assert len(arbor("audit", "head", "--all", "--json").json["heads"]) == 2
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"chain": "gone", "number": 1, "digest": "00"}))
    uncompared = arbor("audit", "verify", "--all", "--heads", str(other)).err
    assert f"no exported head of {audited_tenant.slug}, the installation" in uncompared
    assert "there is no chain gone" in uncompared
    superuser.execute("UPDATE audit_auditevent SET actor = 'user:eve' WHERE actor = 'user:nora'")
    broken = arbor("audit", "verify", "--json")
    assert broken.code == 1
    assert broken.json["chains"][0]["broken_at"]["kind"] == "row_changed"
    assert "of seal 1 was changed" in arbor("audit", "verify").out
    assert "not both" in arbor("audit", "verify", "--all", "--tenant", audited_tenant.slug).err
    assert datetime.fromisoformat(head["at"]) <= datetime.now(UTC)


def test_doctor_checks_the_latest_seals(
    arbor: Arbor, audited_tenant: Tenant, superuser: psycopg.Connection[Any]
) -> None:
    assert check_audit().verdict is CheckVerdict.OK
    superuser.execute("UPDATE audit_auditevent SET at = at - interval '1 day'")
    assert (check_audit().verdict, "not sealed for long" in check_audit().detail) == (CheckVerdict.WARN, True)
    seal_audit(sinks=())
    assert "seals are intact" in check_audit().detail
    superuser.execute("DELETE FROM audit_auditevent WHERE actor = 'user:nora'")
    assert check_audit().verdict is CheckVerdict.FAIL
    assert "was deleted" in check_audit().detail


def test_a_span_longer_than_the_calendar_finds_all_acts(arbor: Arbor, audited_tenant: Tenant) -> None:
    found = message_starts(arbor("audit", "list", "--since", "9999999d", "--json"))
    assert found == ["lowere", "cut 30", "raised"]
