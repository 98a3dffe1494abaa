"""The reflex policy behind the model port."""

from __future__ import annotations

from decimal import Decimal

import pytest

from arbor.adapters.connect import Credentials, connect_model
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.memory.maintenance.calls import Excerpt, maintenance_request
from arbor.memory.maintenance.replies import read_concepts, read_scores, read_summary
from arbor.models.breaker import Breakers
from arbor.models.handles import REFLEX_HANDLE
from arbor.models.ports import CallPurpose, Model, ModelRequest
from arbor.models.usage import Usage
from tests.unit.heartbeat.builders import situation


@pytest.fixture
def model() -> Model:
    return connect_model(str(REFLEX_HANDLE), Credentials(), breakers=Breakers())


@pytest.fixture
def think_request() -> ModelRequest:
    view = situation(model_is_reflex=True, actions=ACTIONS.offers(tuple(ACTIONS)))
    return ModelRequest(
        purpose=CallPurpose.THINK, system="", messages=(), context=view.model_dump(mode="json")
    )


def test_the_reflex_policy_gives_a_valid_reply_free_of_charge(
    model: Model, think_request: ModelRequest
) -> None:
    reply = model.complete(think_request, deadline_s=1)

    parsed = parse_reply(reply.text)
    assert parsed.reply.thinking
    assert (parsed.dropped, parsed.repairs) == ((), ())
    assert (reply.provider, reply.model, reply.usage) == ("reflex", "policy", Usage())
    assert reply.cost_usd == 0
    assert reply.text == model.complete(think_request, deadline_s=1).text


def memories_request(purpose: CallPurpose) -> ModelRequest:
    memories = [
        Excerpt(text="The keel of the Heron was laid in Lisbon.", role="Ada", type="episodic"),
        Excerpt(text="Remember this: the Heron sails on Friday.", role="user", type="episodic"),
    ]
    return maintenance_request(purpose, memories, nonce="0123456789abcdef", for_rules=True)


def test_the_reflex_policy_summarizes_by_rule(model: Model) -> None:
    reply = model.complete(memories_request(CallPurpose.SUMMARIZE), deadline_s=1)
    summary = read_summary(reply.text)
    assert "Ada: The keel of the Heron was laid in Lisbon." in summary
    assert (reply.provider, reply.cost_usd) == ("reflex", Decimal(0))


def test_the_reflex_policy_extracts_concepts_by_rule(model: Model) -> None:
    concepts = read_concepts(
        model.complete(memories_request(CallPurpose.EXTRACT), deadline_s=1).text, count=2
    ).by_place
    assert {"Heron", "Lisbon"} <= {concept.name for concept in concepts[0]}
    assert "Heron" in {concept.name for concept in concepts[1]}


def test_the_reflex_policy_appraises_importance_by_rule(model: Model) -> None:
    scores = read_scores(
        model.complete(memories_request(CallPurpose.APPRAISE_MEMORIES), deadline_s=1).text, count=2
    ).by_place
    assert scores[1] == 1.0
    assert scores[0] < 1.0
