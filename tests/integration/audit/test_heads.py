"""The export of new heads of chains, and the comparison with them that finds a cut-off end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from apps.audit.services.chains import AuditChain
from apps.fleet.audit_heads import (
    HeadFile,
    HeadLog,
    HeadUrl,
    configured_sinks,
    head_json,
    read_heads,
)
from apps.fleet.audit_seals import seal_audit
from apps.memories.services.jobs.job_runs import record_job_run
from apps.queues import Task
from apps.tenants.models import Tenant
from arbor.agents.identity import verify
from arbor.agents.keys import SigningKey
from arbor.audit.faults import FaultKind
from arbor.errors import ConfigurationInvalid, DeliveryFailed, Invalid
from tests.integration.audit.conftest import (
    delete_seal,
    record_acts,
    record_platform_act,
    seal,
    verify_tenant,
)


def test_a_new_head_goes_to_its_file_once(tenant: Tenant, tmp_path: Path) -> None:
    path = tmp_path / "heads.jsonl"
    record_platform_act("first")
    record_acts(tenant, "first")
    seal_audit(sinks=[HeadFile(path)])
    record_job_run(name=Task.SEAL_AUDIT.value, period_s=30, seconds=0.0)
    first = path.read_text().splitlines()
    chains = {json.loads(line)["chain"] for line in first}
    assert chains == {str(tenant.id), "platform"}
    seal_audit(sinks=[HeadFile(path)])
    assert path.read_text().splitlines() == first
    record_acts(tenant, "second")
    seal_audit(sinks=[HeadFile(path)])
    heads = read_heads(path.read_text().splitlines())
    assert sorted(heads[str(tenant.id)]) == [1, 2]
    assert verify_tenant(tenant, heads=heads[str(tenant.id)]).fault_count == 0


def test_new_heads_are_logged_for_a_comparison(tenant: Tenant, superuser: psycopg.Connection[Any]) -> None:
    record_acts(tenant, "first")
    seal()
    record_acts(tenant, "second")
    with capture_logs() as logs:
        seal_audit()
    lines = ["12:00 outbox | " + json.dumps(line) for line in logs if line["event"] == "audit_head_sealed"]
    heads = read_heads(lines)[str(tenant.id)]
    assert verify_tenant(tenant, heads=heads).fault_count == 0
    # Cutting the end off takes no key: the job seals what is left.
    superuser.execute("DELETE FROM audit_auditevent WHERE message = 'second'")
    delete_seal(superuser, 2)
    record_acts(tenant, "third")
    seal()
    assert verify_tenant(tenant).fault_count == 0
    report = verify_tenant(tenant, heads=heads)
    assert [fault.kind for fault in report.faults] == [FaultKind.HEAD_REPLACED]
    assert report.as_json()["heads_compared"] == 1


def test_an_exported_head_has_the_signed_digest_of_its_seal(tenant: Tenant, system_key: SigningKey) -> None:
    record_acts(tenant, "only")
    seal()
    chain = AuditChain(tenant_id=tenant.id)
    head = chain.head()
    assert head is not None
    exported = head_json(chain, head)
    assert exported["digest"] == head.header.digest.hex()
    assert verify(system_key.public, head.header.signed_bytes, bytes.fromhex(exported["signature"]))


class UnreadySink:
    """A sink that refuses heads until it is ready."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_ready = False
        self.heads: list[dict[str, Any]] = []

    def accept(self, heads: Sequence[dict[str, Any]]) -> None:
        """Accept heads, or refuse them."""
        if not self.is_ready:
            raise DeliveryFailed("answered 503")
        self.heads += heads


def test_only_a_sink_that_refused_gets_the_heads_with_the_next_run(tenant: Tenant, tmp_path: Path) -> None:
    path, sink = tmp_path / "heads.jsonl", UnreadySink("example.org")
    record_acts(tenant, "first")
    record_platform_act("first")
    for _ in range(2):
        with pytest.raises(DeliveryFailed, match="answered 503"):
            seal_audit(sinks=[sink, HeadFile(path)])
        assert len(path.read_text().splitlines()) == 2  # the other sink is served once
    record_acts(tenant, "second")
    sink.is_ready = True
    seal_audit(sinks=[sink, HeadFile(path)])
    assert sorted(head["number"] for head in sink.heads) == [1, 2]
    assert len(path.read_text().splitlines()) == 3


def test_all_sinks_that_refuse_are_named(tenant: Tenant) -> None:
    record_acts(tenant, "only")
    with pytest.raises(DeliveryFailed, match=r"^one: answered 503; other: answered 503$"):
        seal_audit(sinks=[UnreadySink("one"), UnreadySink("other")])


def test_a_file_that_cannot_be_written_is_named(tenant: Tenant, tmp_path: Path) -> None:
    record_acts(tenant, "only")
    with pytest.raises(ConfigurationInvalid, match="ARBOR_AUDIT_HEADS_FILE must be a file"):
        seal_audit(sinks=[HeadFile(tmp_path / "missing" / "heads.jsonl")])


@pytest.mark.parametrize(
    "line", ["[]", '{"chain": "a", "number": 1e999, "digest": "b"}', '{"chain": ' + "[" * 100_000]
)
def test_a_line_that_is_no_head_is_refused(line: str) -> None:
    with pytest.raises(Invalid, match="line 1 is no exported head"):
        read_heads([line])


def test_a_replaced_seal_does_not_replace_its_exported_head() -> None:
    lines = [f'{{"chain": "platform", "number": 7, "digest": "{digest}"}}' for digest in ("aa", "bb")]
    assert read_heads(lines) == {"platform": {7: "aa"}}


def test_the_settings_name_the_sinks(tenant: Tenant, tmp_path: Path, settings: Any) -> None:
    (log,) = configured_sinks()
    assert type(log) is HeadLog
    settings.ARBOR_AUDIT_HEADS_FILE = str(tmp_path / "heads.jsonl")
    settings.ARBOR_AUDIT_HEADS_URL = "https://example.org/heads"
    _, file, url = configured_sinks()
    assert (type(file), type(url)) == (HeadFile, HeadUrl)
    posted: list[tuple[str, bytes]] = []
    url._webhook.post = lambda target, *, body, headers: posted.append((target, body))  # type: ignore[attr-defined]
    record_acts(tenant, "only")
    seal_audit(sinks=[file, url])
    ((target, body),) = posted
    assert target == "https://example.org/heads"
    assert json.loads(body)["heads"][0]["number"] == 1
    assert read_heads((tmp_path / "heads.jsonl").read_text().splitlines())
