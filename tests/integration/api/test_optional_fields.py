"""Optional fields of bodies: each one alone is stored and shown, or refused with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ninja import Schema

from apps.api.routers.goals import GoalInput, GoalPatch
from apps.api.routers.hooks import HookInput, HookPatch
from apps.api.routers.selves import AspectChange, AspectInput, BeliefChange, BeliefInput, ProposalInput
from apps.api.routers.webhooks import WebhookInput
from apps.api.routers.workflows import WorkflowChange, WorkflowInput
from arbor.selves.proposals import ProposalKind
from tests.factories.workflows import SOURCE
from tests.support.api import Caller

LATER = "2099-01-02T03:04:05+00:00"


@dataclass(frozen=True, kw_only=True)
class Body:
    """A body of an operation: its required fields, and a value for each optional one.

    For a body that changes a row, `required` has the fields of the body that creates the row.
    """

    schema: type[Schema]
    path: str
    required: dict[str, Any]
    optional: dict[str, Any]
    #: Optional fields that need another one, or have an effect elsewhere.
    untried: frozenset[str] = frozenset()


BELIEF = {"confidence": 0.9, "stability": 0.1}
ASPECT = {"strength": 0.9, "stability": 0.1}
AGENT = "/agents/{agent}"
CREATED = [
    Body(
        schema=BeliefInput,
        path=f"{AGENT}/beliefs",
        required={"statement": "Tides turn."},
        optional={**BELIEF, "category": "time"},
    ),
    Body(
        schema=AspectInput,
        path=f"{AGENT}/aspects",
        required={"content": "patient", "kind": "trait"},
        optional=ASPECT,
    ),
    Body(
        schema=ProposalInput,
        path=f"{AGENT}/proposals",
        required={"content": "The river floods in March."},
        optional={"kind": "belief", "confidence": 0.9},
    ),
    Body(
        schema=GoalInput,
        path=f"{AGENT}/goals",
        required={"title": "Map the harbour"},
        optional={
            "description": "Every pier.",
            "layer": "task",
            "type": "maintain",
            "priority": 7,
            "state": "queued",
            "deadline": LATER,
        },
        untried=frozenset({"parent_id"}),
    ),
    Body(
        schema=HookInput,
        path="/hooks",
        required={"name": "ci", "agent_id": "{agent}"},
        optional={"kind": "github", "signature_header": "X-Sign", "events": ["push"], "urgent_from": 0.5},
        untried=frozenset({"mapping", "secret"}),
    ),
    Body(
        schema=WebhookInput,
        path="/webhooks",
        required={"name": "ci", "url": "https://example.org/signals"},
        optional={"signals": ["memory.goal_*"], "agent_id": "{agent}"},
    ),
    Body(
        schema=WorkflowInput,
        path="/workflows",
        required={"name": "review", "source": SOURCE},
        optional={"description": "A person looks.", "enabled": False},
        untried=frozenset({"agent", "schedule"}),
    ),
]
CHANGED = [
    Body(
        schema=BeliefChange,
        path=f"{AGENT}/beliefs",
        required={"statement": "Tides turn."},
        optional={**BELIEF, "status": "questioned"},
        untried=frozenset({"reason"}),
    ),
    Body(
        schema=AspectChange,
        path=f"{AGENT}/aspects",
        required={"content": "patient", "kind": "trait"},
        optional={**ASPECT, "status": "questioned"},
        untried=frozenset({"reason"}),
    ),
    Body(
        schema=GoalPatch,
        path=f"{AGENT}/goals",
        required={"title": "Map the harbour"},
        optional={"state": "queued", "fraction": 0.5, "deadline": LATER, "blocked_by": "fog"},
        untried=frozenset({"reason", "note", "parent_id"}),
    ),
    Body(
        schema=HookPatch,
        path="/hooks",
        required={"name": "ci", "agent_id": "{agent}"},
        optional={"events": ["push"], "urgent_from": 0.5},
        untried=frozenset({"mapping"}),
    ),
    Body(
        schema=WorkflowChange,
        path="/workflows",
        required={"name": "review", "source": SOURCE},
        optional={"description": "A person looks.", "enabled": False},
        untried=frozenset({"source", "agent", "schedule"}),
    ),
]


def _filled(value: Any, agent: str) -> Any:
    return value.replace("{agent}", agent) if isinstance(value, str) else value


def _create(owner: Caller, agent: str, body: Body, number: int, **fields: Any) -> dict[str, Any]:
    """Create a row whose first required field has a number, so that no two rows are the same."""
    required = {name: _filled(value, agent) for name, value in body.required.items()}
    first = next(iter(required))
    required[first] += f"-{number}" if first == "name" else f" {number}"
    response = owner.post(body.path.format(agent=agent), {**required, **fields})
    assert response.status_code == 201, response.content
    created: dict[str, Any] = response.json()
    return created.get("hook") or created.get("webhook") or created


def test_each_optional_field_of_a_new_row_is_stored(owner: Caller, vega: dict[str, Any]) -> None:
    for body in CREATED:
        assert {*body.required, *body.optional, *body.untried} == set(body.schema.model_fields)
        for number, (name, value) in enumerate(body.optional.items()):
            wanted = _filled(value, vega["id"])
            stored = _create(owner, vega["id"], body, number, **{name: wanted})
            assert stored[name] == wanted, (body.schema, name)


def test_each_optional_field_of_a_change_is_stored(owner: Caller, vega: dict[str, Any]) -> None:
    for body in CHANGED:
        assert {*body.optional, *body.untried} == set(body.schema.model_fields)
        for number, (name, value) in enumerate(body.optional.items()):
            row = _create(owner, vega["id"], body, 10 + number)
            address = f"{body.path.format(agent=vega['id'])}/{row['id']}"
            changed = owner.send("patch", address, {name: value}).json()
            shown = {field: changed[field] for field in body.optional}
            assert shown == {**{field: row[field] for field in body.optional}, name: value}, body.schema
            assert row[name] != value, (body.schema, name)


def test_a_dropped_belief_gets_the_other_values_of_the_change(owner: Caller, vega: dict[str, Any]) -> None:
    own = f"/agents/{vega['id']}/beliefs"
    row = owner.post(own, {"statement": "Tides turn."}).json()
    change = {"status": "dropped", "confidence": 0.1, "stability": 0.2, "reason": "It was wrong."}
    changed = owner.send("patch", f"{own}/{row['id']}", change).json()
    assert {**changed, "reason": change["reason"]} == {**changed, **change}
    assert owner.get(f"/agents/{vega['id']}/self/changes", limit=1).json()[0]["reason"] == change["reason"]


NODE = {"kind": "memory", "id": "00000000-0000-0000-0000-000000000000"}
REFUSED = [
    ("proposals", {"content": "Be brief.", "kind": "preference"}, "needs the key and the value"),
    ("capabilities", {"resource": "arbor://a/b", "time_zone": "Asia/Tokyo"}, "without hours"),
    ("capabilities", {"resource": "arbor://a/b", "rate_uses": 3}, "its uses and its seconds"),
    ("relations", {"source": {**NODE, "x": 1}, "relation": "causes", "target": NODE}, "source.x"),
    ("beliefs/{id}", {"reason": "Because."}, "nothing to change"),
    ("aspects/{id}", {"reason": "Because."}, "nothing to change"),
    ("goals/{id}", {"note": "Half.", "reason": "Dry."}, "a reason belongs to a new state"),
]


def test_each_documented_kind_of_a_proposal_is_accepted(owner: Caller, vega: dict[str, Any]) -> None:
    kinds = ProposalInput.model_json_schema()["properties"]["kind"]["enum"]
    assert set(ProposalKind) - {ProposalKind(kind) for kind in kinds} == {ProposalKind.PREFERENCE}
    for kind in kinds:
        proposed = owner.post(f"/agents/{vega['id']}/proposals", {"content": f"I am {kind}.", "kind": kind})
        assert (proposed.status_code, proposed.json()["kind"]) == (201, kind)


def test_a_proposal_of_what_the_agent_has_is_refused_as_such(owner: Caller, vega: dict[str, Any]) -> None:
    own = f"/agents/{vega['id']}"
    proposal = {"content": "Ice floats.", "kind": "belief"}
    assert owner.post(f"{own}/proposals", proposal).status_code == 201
    waiting = owner.post(f"{own}/proposals", proposal)
    assert (waiting.status_code, "waits for a decision" in waiting.json()["detail"]) == (409, True)
    assert owner.post(f"{own}/beliefs", {"statement": "Ice floats.", "category": "world"}).status_code == 201
    refused = owner.post(f"{own}/proposals", proposal)
    assert refused.status_code == 409
    assert refused.json()["detail"] == "the agent has this already: Ice floats."


def test_a_field_without_an_effect_is_refused(owner: Caller, vega: dict[str, Any]) -> None:
    for path, fields, reason in REFUSED:
        name, _, is_change = path.partition("/")
        address = f"/agents/{vega['id']}/{name}"
        if is_change:
            body = next(body for body in CHANGED if body.path.endswith(name))
            address += f"/{_create(owner, vega['id'], body, 20)['id']}"
        refused = owner.send("patch" if is_change else "post", address, fields)
        assert refused.status_code == 422, (path, fields)
        assert reason in refused.json()["detail"]
