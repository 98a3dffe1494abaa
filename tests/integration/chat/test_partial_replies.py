"""Replies shown while the model writes: published sentence by sentence, checked, resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.calls.services.leased_calls import LeasedCall
from apps.contacts.models import PartialReply
from apps.contacts.services import partial_replies
from apps.contacts.services.chat import end_session, receive_turn
from apps.contacts.services.partial_replies import ReplyPublisher, read_progress
from apps.heartbeats.services.calls import calls
from apps.maintenance.services.recovery import recover_maintenance_calls
from apps.selves.models import Boundary
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.contacts.reply_progress import ReplyFollower, ReplyProgress
from arbor.errors import EmbeddingFailed, ModelUnavailable, NotFound
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage, ScriptedStream, TextSink
from tests.factories.agents import AgentPolicyFactory
from tests.integration.chat.conftest import Script, Talk, last_question, model_answer, open_chat
from tests.integration.maintenance.maintenance_setup import move_into_past

REPLY = "The tide is high now. The bridge opens at nine. Come at eight!"


@pytest.fixture
def boundary(agent: Agent) -> Boundary:
    """Return a boundary that refuses to name the gate code."""
    with tenant_transaction(agent.tenant_id):
        return Boundary.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            name="gate",
            type="ethical",
            response="refuse",
            description="I do not name the gate code.",
            patterns=["gate code"],
        )


class WatchedReply:
    """The parts of a reply as a stream; records the events that a reader of the turn gets after each part."""

    def __init__(self, agent: Agent, text: str, size: int = 5) -> None:
        self.events: list[str] = []
        self._agent = agent
        self._parts = [text[at : at + size] for at in range(0, len(text), size)]

    def __iter__(self) -> Iterator[str]:
        follower = ReplyFollower()
        for part in self._parts:
            yield part
            self.events += [event.text or event.kind for event in follower.advance(progress_of(self._agent))]


def progress_of(agent: Agent) -> ReplyProgress:
    turn = last_question(agent)
    with tenant_transaction(agent.tenant_id):
        return read_progress(turn_id=turn.id)


def test_sentences_are_shown_while_the_model_writes(talk: Talk, agent: Agent, scripted: Script) -> None:
    watched = WatchedReply(agent, model_answer(REPLY, thinking="Tides."))
    scripted(ScriptedStream(pieces=watched))

    answer = talk("When may I come?")

    assert watched.events == ["The tide is high now.", " The bridge opens at nine."]
    assert answer.content == REPLY
    progress = progress_of(agent)
    assert progress.answer is not None
    assert (progress.answer.content, progress.answer.model) == (REPLY, "scripted/model")
    follower = ReplyFollower()
    assert follower.resume("1.1", progress) == []
    assert [event.text for event in follower.advance(progress)] == [
        " The bridge opens at nine. Come at eight!",
        "",
    ]


def test_a_boundary_match_in_the_middle_ends_the_shown_reply(
    talk: Talk, agent: Agent, scripted: Script, boundary: Boundary
) -> None:
    text = "The tide is high now. The gate code is 4711. Come at eight!"
    watched = WatchedReply(agent, model_answer(text))
    scripted(ScriptedStream(pieces=watched))

    answer = talk("When may I come?")

    assert watched.events == ["The tide is high now."]
    assert "4711" not in answer.content
    assert answer.content.startswith("I do not say what I was about to say")
    progress = progress_of(agent)
    assert progress.answer is not None
    assert progress.answer.is_withheld
    assert "4711" not in json.dumps([*progress.sentences])


def test_another_try_restarts_the_shown_reply(talk: Talk, agent: Agent, scripted: Script) -> None:
    broken = WatchedReply(agent, '{"thinking": "", "reply": "One thing is sure. And this is ')
    repeated = WatchedReply(agent, model_answer(REPLY))
    scripted(ScriptedStream(pieces=broken, error=ModelUnavailable("cut")), ScriptedStream(pieces=repeated))
    with tenant_transaction(agent.tenant_id):
        AgentPolicyFactory(agent=agent, tier_models={"standard": ["scripted/a", "scripted/b"]})

    answer = talk("When may I come?")

    assert broken.events == ["One thing is sure."]
    assert repeated.events[0] == "One thing is sure."
    assert "".join(repeated.events[1:]) == "restartThe tide is high now. The bridge opens at nine."
    assert answer.content == REPLY


def test_an_answer_that_was_not_streamed_is_read_alike(talk: Talk, agent: Agent, scripted: Script) -> None:
    scripted(model_answer(REPLY))
    talk("When may I come?")

    events = ReplyFollower().advance(progress_of(agent))

    assert [event.text or event.kind for event in events] == [REPLY, "done"]


def test_a_failed_turn_is_read_as_an_error(talk: Talk, agent: Agent, scripted: Script) -> None:
    scripted(
        ScriptedStream(pieces=['{"thinking": "", "reply": "One thing is'], error=ModelUnavailable("cut"))
    )
    talk("When may I come?")

    (event,) = ReplyFollower().advance(progress_of(agent))

    assert (event.kind, event.text) == ("error", "ModelUnavailable: cut")


def test_an_error_while_publishing_does_not_end_the_call(
    talk: Talk, scripted: Script, monkeypatch: pytest.MonkeyPatch, agent: Agent
) -> None:
    monkeypatch.setattr(partial_replies, "PUBLISH_SENTENCES", "SELECT nonsense")
    scripted(ScriptedStream(pieces=[model_answer(REPLY)]))

    assert talk("When may I come?").content == REPLY
    assert progress_of(agent).sentences == []


def test_without_an_embedder_no_sentence_is_published(
    talk: Talk, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise EmbeddingFailed("down")

    monkeypatch.setattr(partial_replies, "embed_query", fail)
    scripted(ScriptedStream(pieces=[model_answer(REPLY)]))

    assert talk("When may I come?").content == REPLY
    assert progress_of(agent).sentences == []


def leased_call(agent: Agent, turn_id: UUID, attempt: int) -> LeasedCall:
    return LeasedCall(
        call_id=turn_id,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        model="scripted/model",
        request=ModelRequest(
            purpose=CallPurpose.CHAT, system="", messages=(PromptMessage(role="user", content=""),)
        ),
        attempt=attempt,
        subject={"turn": str(turn_id)},
        failures=0,
    )


def test_a_stale_worker_publishes_nothing_more(agent: Agent) -> None:
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        turn = receive_turn(session_id=session.id, text="Hello?", enqueued=False)
    stale, current = (ReplyPublisher(leased_call(agent, turn.id, attempt)) for attempt in (1, 2))

    stale('{"reply": "One thing is sure. ')
    current('{"reply": "The tide is high now. ')
    stale("A second thing is not. ")
    current("The bridge is up. ")

    progress = progress_of(agent)
    assert (progress.attempt, progress.sentences) == (2, ["The tide is high now.", " The bridge is up."])


def test_a_failed_publication_releases_its_connection(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        turn = receive_turn(session_id=session.id, text="Hello?", enqueued=False)
    monkeypatch.setattr(partial_replies, "PUBLISH_SENTENCES", "SELECT nonsense")
    settings.ARBOR_DB_POOL_SIZE = 1

    ReplyPublisher(leased_call(agent, turn.id, 1))('{"reply": "One thing is sure. ')

    assert connections[APP].connection is None


def test_a_turn_of_another_tenant_is_not_found(agent: Agent, other_tenant: Tenant, talk: Talk) -> None:
    talk("Hello?")
    turn = last_question(agent)

    with tenant_transaction(other_tenant.id), pytest.raises(NotFound):
        read_progress(turn_id=turn.id)


def test_the_end_of_a_conversation_deletes_its_partial_replies(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
    scripted(ScriptedStream(pieces=[model_answer(REPLY)]))
    talk("When may I come?")
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        partial = PartialReply.objects.get()
        assert str(partial) == "2 sentences of attempt 1"
        end_session(session_id=session.id)
        assert not PartialReply.objects.exists()


def test_only_conversations_are_streamed(
    talk: Talk, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[LeasedCall] = []

    def publisher_of(call: LeasedCall) -> TextSink:
        published.append(call)
        return lambda _: None

    monkeypatch.setattr(calls, "ReplyPublisher", publisher_of)
    scripted(model_answer(REPLY), repeat=True)

    talk("Are you there?")
    calls._ask(replace(leased_call(agent, last_question(agent).id, 1), request=appraisal_request()))

    assert [call.request.purpose for call in published] == [CallPurpose.CHAT]


def appraisal_request() -> ModelRequest:
    return ModelRequest(
        purpose=CallPurpose.APPRAISE_MEMORIES, system="", messages=(PromptMessage(role="user", content=""),)
    )


def test_readers_get_an_error_after_the_worker_was_lost(talk: Talk, agent: Agent, scripted: Script) -> None:
    def killed() -> Iterator[str]:
        yield '{"thinking": "", "reply": "One thing is sure. And this'
        raise KeyboardInterrupt

    scripted(ScriptedStream(pieces=killed()), repeat=True)
    with pytest.raises(KeyboardInterrupt):
        talk("Are you there?")
    follower = ReplyFollower()
    assert [event.text for event in follower.advance(progress_of(agent))] == ["One thing is sure."]

    move_into_past(agent, timedelta(minutes=10))
    recover_maintenance_calls()

    (event,) = follower.advance(progress_of(agent))
    assert (event.kind, "did not come back" in event.text) == ("error", True)
