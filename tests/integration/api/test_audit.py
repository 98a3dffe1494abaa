"""The audit log over the API: searched, exported, verified."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.fleet.audit_seals import seal_audit
from tests.integration.audit.conftest import record_acts
from tests.support.api import Caller


def test_acts_are_searched_and_shown(owner: Caller, viewer: Caller, tenant: Any) -> None:
    record_acts(tenant, "raised the daily limit of Vega", "lowered the daily limit of Lyra")
    found = viewer.get("/audit", words="LIMIT vega").json()["items"]
    assert [act["message"] for act in found] == ["raised the daily limit of Vega"]
    assert (found[0]["level"], found[0]["before"], found[0]["after"]) == ("info", {}, {})
    assert viewer.get(f"/audit/{found[0]['id']}").json() == found[0]
    recent = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    filtered = viewer.get("/audit", actor="user:nora", level="info", since=recent, limit=1).json()
    assert [act["message"][:7] for act in filtered["items"]] == ["lowered"]
    rest = viewer.get("/audit", actor="user:nora", limit=5, cursor=filtered["next_cursor"]).json()["items"]
    assert [act["message"][:6] for act in rest] == ["raised"]
    assert viewer.get("/audit", until=recent, actor="user:nora").json()["items"] == []
    assert viewer.get("/audit", words="x" * 201).status_code == 422


def test_times_of_any_offset_are_read_as_utc(owner: Caller, tenant: Any) -> None:
    record_acts(tenant, "raised the daily limit of Vega")
    # PostgreSQL itself refuses offsets of 16 hours or more.
    assert len(owner.get("/audit", until="9469-09-30T11:30:44+20:43", actor="user:nora").json()["items"]) == 1
    assert owner.get("/audit", since="9469-09-30T11:30:44-20:43").json()["items"] == []
    for path in ("/audit", "/audit/export"):
        refused = owner.get(path, since="9999-12-31T23:59:59-10:00")
        assert refused.status_code == 422
        assert "years 1 to 9999 in UTC" in refused.text


def test_another_tenant_finds_nothing(owner: Caller, outsider: Caller, tenant: Any) -> None:
    record_acts(tenant, "raised the daily limit of Vega")
    (act,) = owner.get("/audit", words="vega").json()["items"]
    assert outsider.get("/audit", words="vega").json()["items"] == []
    assert outsider.get(f"/audit/{act['id']}").status_code == 404


def test_an_export_streams_lines_and_is_audited(owner: Caller, viewer: Caller, tenant: Any) -> None:
    record_acts(tenant, "first", "second")
    assert viewer.get("/audit/export").status_code == 403
    response = owner.get("/audit/export", actor="user:nora")
    lines = b"".join(response).decode().splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["first", "second"]
    (exported,) = owner.get("/audit", action="audit.exported").json()["items"]
    assert exported["detail"] == {"actor": "user:nora"}


def test_the_chain_is_verified_and_its_head_shown(
    owner: Caller, viewer: Caller, tenant: Any, settings: Any
) -> None:
    settings.ARBOR_MAINTENANCE_SHARE = 1.0
    record_acts(tenant, "first")
    assert "nothing is sealed yet" in viewer.get("/audit/head").json()["detail"]
    for message in ("second", "third"):
        seal_audit(sinks=())
        record_acts(tenant, message)
    seal_audit(sinks=())
    report = owner.get("/audit/chain").json()
    assert (report["intact"], report["seals"], report["broken_at"]) == (True, 3, None)
    assert owner.get("/audit/chain", latest=1).json()["seals"] == 1
    head = viewer.get("/audit/head").json()
    assert (head["number"], head["digest"]) == (3, report["head"])
    assert viewer.get("/audit/chain").status_code == 403
