"""Seeds over HTTP: streamed, sent, imported, restored, forked, compared, merged and deleted."""

from __future__ import annotations

from typing import Any

from apps.tenants.models import Tenant
from tests.support.api import Caller, caller_of


def test_an_exported_seed_is_imported_as_another_agent(owner: Caller, vega: dict[str, Any]) -> None:
    answer = owner.get(f"/agents/{vega['id']}/seed")
    file = b"".join(answer.streaming_content)
    sent = owner.client.post(
        "/api/v1/seeds",
        data=file,
        content_type="application/octet-stream",
        headers={"Authorization": f"Bearer {owner.token}"},
    )
    assert sent.status_code == 201
    seed = sent.json()
    assert (seed["agent_id"], seed["reason"]) == (vega["id"], "uploaded")

    created = owner.post(f"/seeds/{seed['id']}/import", {"name": "Lyra"}).json()

    assert created["name"] == "Lyra"
    assert created["requests"]
    assert owner.get("/seeds", agent_id=vega["id"]).json()["items"] == [seed]
    downloaded = owner.get(f"/seeds/{seed['id']}/file")
    assert b"".join(downloaded.streaming_content) == file


def test_an_agent_is_restored_forked_compared_and_merged(owner: Caller, vega: dict[str, Any]) -> None:
    path = f"/agents/{vega['id']}"
    seed = owner.post(f"{path}/seeds").json()
    owner.send("put", f"{path}/preferences/tone", {"value": "dry"})
    later = owner.post(f"{path}/seeds").json()

    sections = owner.get(f"/seeds/{seed['id']}/diff/{later['id']}").json()
    assert {section["name"]: section["added"] for section in sections}["preferences"] == 1

    restored = owner.post(f"{path}/restore", {"seed_id": seed["id"], "skip": ["goals"]}).json()
    assert restored["digest"] == seed["digest"]
    assert owner.get(f"{path}/preferences").json()["items"] == []
    assert owner.get(f"/seeds/{restored['saved_seed_id']}").json()["reason"] == "restore"

    fork = owner.post(f"{path}/fork", {"name": "Lyra"})
    assert fork.status_code == 201
    merged = owner.post(f"/agents/{fork.json()['agent_id']}/merge", {"seed_id": later["id"]}).json()
    assert merged["proposals"] == 1
    assert owner.delete(f"/seeds/{later['id']}").status_code == 200
    assert owner.get(f"/seeds/{later['id']}").status_code == 404


def test_a_token_of_one_agent_reads_no_seed_of_another(
    owner: Caller, tenant: Tenant, vega: dict[str, Any]
) -> None:
    other = owner.post("/agents", {"name": "Lyra", "template": "Monitor"}).json()
    seed = owner.post(f"/agents/{other['id']}/seeds").json()
    own = caller_of(tenant, agent_id=vega["id"])
    refused = own.post(f"/agents/{vega['id']}/restore", {"seed_id": seed["id"], "dry_run": True})
    assert refused.status_code == 403
    assert f"not the agent {other['id']}" in refused.json()["detail"]


def test_a_body_that_is_no_seed_is_refused(owner: Caller) -> None:
    refused = owner.client.post(
        "/api/v1/seeds",
        data=b"Dear Vega",
        content_type="application/octet-stream",
        headers={"Authorization": f"Bearer {owner.token}"},
    )

    assert refused.status_code == 422
    assert "not a whole seed" in refused.json()["detail"]
