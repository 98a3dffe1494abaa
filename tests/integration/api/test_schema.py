"""Requests generated from the OpenAPI document: no failure, no foreign row, and every response as the document says."""

from __future__ import annotations

import json
from itertools import cycle
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from apps.agents.services.percepts import PERCEIVABLE_KINDS
from apps.api.api import PATH, api
from apps.api.routers.selves import AspectInput, BeliefInput
from apps.tenants.models import Tenant
from arbor.selves.values import AspectKind, BeliefCategory, NewAspect, NewBelief
from config.cli.openapi import DOCUMENT, document
from tests.support.api import Caller
from tests.support.console_rows import make_world

SECRET = "zebra-in-the-attic"
#: Generated requests of each operation.
EXAMPLES = 4
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.mark.timeout(900)
def test_generated_requests_are_answered_as_documented(
    owner: Caller, vega: dict[str, Any], other_tenant: Tenant, settings: Any
) -> None:
    settings.ARBOR_API_PER_MINUTE = 0
    foreign = make_world(other_tenant, text=SECRET)
    agents = cycle([vega["id"], vega["id"], str(foreign.agent.id)])
    schema = schemathesis.openapi.from_wsgi(f"{PATH}/openapi.json", WSGIHandler())
    count = 0
    results: Any = schema.get_all_operations()
    for result in results:
        operation = result.ok()
        # A stream does not end; test_signals reads it from a real server.
        if not operation.path.endswith("/stream"):
            _try_operation(operation, token=owner.token, agents=agents)
        count += 1
    assert count > 90


def _try_operation(operation: Any, *, token: str, agents: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answer(case: Any) -> None:
        if "agent_id" in (case.path_parameters or {}):
            case.path_parameters["agent_id"] = next(agents)
        response = case.call(headers={"Authorization": f"Bearer {token}"})
        case.validate_response(response, checks=CHECKS)
        assert SECRET.encode() not in response.content

    answer()


@pytest.mark.parametrize(
    ("path", "schema", "field", "others"),
    [
        ("beliefs", "BeliefInput", "statement", {}),
        ("aspects", "AspectInput", "content", {"kind": "purpose"}),
        ("proposals", "ProposalInput", "content", {}),
        ("boundaries", "BoundaryInput", "description", {"name": "no_gossip", "patterns": ["gossip"]}),
        ("memories", "NewMemoryInput", "text", {}),
        ("recall", "RecallInput", "query", {}),
        ("chat", "TurnInput", "text", {}),
    ],
)
def test_a_text_of_the_documented_length_is_accepted(
    owner: Caller, vega: dict[str, Any], path: str, schema: str, field: str, others: dict[str, Any]
) -> None:
    longest = json.loads(DOCUMENT.read_text())["components"]["schemas"][schema]["properties"][field][
        "maxLength"
    ]
    accepted = owner.post(f"/agents/{vega['id']}/{path}", {field: "a" * longest, **others})
    assert accepted.status_code < 300, accepted.content


def test_the_document_lists_the_kinds_of_events_that_are_accepted(
    owner: Caller, vega: dict[str, Any]
) -> None:
    kinds = json.loads(DOCUMENT.read_text())["components"]["schemas"]["PerceivableKind"]["enum"]
    assert tuple(kinds) == PERCEIVABLE_KINDS
    for kind in kinds:
        answer = owner.post(f"/agents/{vega['id']}/events", {"text": "It rains.", "kind": kind})
        assert (answer.status_code, answer.json()["kind"]) == (201, kind)


def test_the_committed_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == document()


def test_the_document_is_built_once() -> None:
    # Anybody may request it, and it takes half a second to build.
    assert api.get_openapi_schema() is api.get_openapi_schema(path_params={})


def test_the_document_describes_every_operation() -> None:
    for path, operations in schemathesis.openapi.from_path(str(DOCUMENT)).raw_schema["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            assert operation["description"], (method, path)
            assert operation["security"], (method, path)


def test_a_self_has_the_same_defaults_by_every_door() -> None:
    belief = NewBelief(statement="Tides turn.", category=BeliefCategory.WORLD)
    aspect = NewAspect(content="patient", kind=AspectKind.TRAIT)
    posted = BeliefInput(statement="Tides turn.")
    assert (posted.confidence, posted.stability) == (belief.confidence, belief.stability)
    added = AspectInput(content="patient", kind=AspectKind.TRAIT)
    assert (added.strength, added.stability) == (aspect.strength, aspect.stability)
