"""The reflex policy behind the model port."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arbor.adapters.connect import Credentials, connect_model
from arbor.clock import SystemClock
from arbor.errors import ModelRejected
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.situation import Environment, Situation
from arbor.models.breaker import Breakers
from arbor.models.handles import REFLEX_HANDLE
from arbor.models.ports import CallPurpose, Model, ModelRequest, Usage


@pytest.fixture
def model() -> Model:
    return connect_model(str(REFLEX_HANDLE), Credentials(), breakers=Breakers())


@pytest.fixture
def request_() -> ModelRequest:
    situation = Situation(
        agent_id="a1",
        name="Scout",
        public_id="agent_00",
        tenant="garden",
        model_is_reflex=True,
        beat_number=1,
        environment=Environment(now=SystemClock().now()),
        energy=10,
        max_energy=20,
        actions=ACTIONS.offers(tuple(ACTIONS)),
    )
    return ModelRequest(
        purpose=CallPurpose.THINK, system="", messages=(), context=situation.model_dump(mode="json")
    )


def test_it_answers_from_the_situation_with_a_valid_reply_for_nothing(
    model: Model, request_: ModelRequest
) -> None:
    reply = model.complete(request_, deadline_s=1)

    parsed = parse_reply(reply.text)
    assert parsed.reply.thinking
    assert (parsed.dropped, parsed.repairs) == ((), ())
    assert (reply.provider, reply.model, reply.usage) == ("reflex", "policy", Usage())
    assert reply.cost_usd == 0
    assert reply.text == model.complete(request_, deadline_s=1).text


@pytest.mark.parametrize("purpose", [CallPurpose.SUMMARIZE, CallPurpose.EXTRACT])
def test_it_only_decides_heartbeats(model: Model, request_: ModelRequest, purpose: CallPurpose) -> None:
    with pytest.raises(ModelRejected, match=f"cannot {purpose}: it only decides heartbeats"):
        model.complete(replace(request_, purpose=purpose), deadline_s=1)
