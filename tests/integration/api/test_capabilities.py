"""Capabilities over the API: managed by operators, explained to all members of the tenant."""

from __future__ import annotations

from typing import Any

from tests.support.api import Caller


def test_an_operator_grants_delegates_and_revokes(
    operator: Caller, viewer: Caller, vega: dict[str, Any]
) -> None:
    address = f"/agents/{vega['id']}/capabilities"
    payload = {"resource": "arbor://fs/read/docs/*", "max_uses": 5}
    assert viewer.post(address, payload).status_code == 403
    response = operator.post(address, payload)
    assert response.status_code == 201, response.content
    grant = response.json()
    assert (grant["status"], grant["constraints"], grant["depth"]) == ("in_force", {"max_uses": 5}, 3)
    assert operator.post(address, payload).status_code == 409
    assert operator.post(address, {"resource": "arbor://fs/read/../x"}).status_code == 422
    assert operator.post(address, {**payload, "hours": "nine to five"}).status_code == 422

    explained = viewer.get(
        f"/agents/{vega['id']}/explain-capability", resource="arbor://fs/read/docs/a"
    ).json()
    assert (explained["granted"], explained["capability"]) == (True, grant["name"])
    denied = viewer.get(f"/agents/{vega['id']}/explain-capability", resource="arbor://fs/read/docs").json()
    assert (denied["granted"], denied["code"]) == (False, "no_grant")

    other = operator.post("/agents", {"name": "Lyra", "template": "Monitor"}).json()
    wider = {"to_agent_id": other["id"], "resource": "arbor://fs/**"}
    refused = operator.post(f"{address}/{grant['id']}/delegate", wider)
    assert (refused.status_code, "is not within" in refused.json()["detail"]) == (403, True)
    delegated = operator.post(
        f"{address}/{grant['id']}/delegate", {"to_agent_id": other["id"], "max_uses": 2}
    )
    assert (delegated.status_code, delegated.json()["parent_id"]) == (201, grant["id"])
    wrong_address = f"/agents/{other['id']}/capabilities/{grant['id']}/revoke"
    assert operator.post(wrong_address, {"reason": "x"}).status_code == 404
    revoked = operator.post(f"{address}/{grant['id']}/revoke", {"reason": "no longer needed"})
    assert revoked.json() == {"revoked": 2}
    assert grant["id"] not in str(viewer.get(address).json())
    assert grant["id"] in str(viewer.get(address, revoked=True, limit=200).json())
