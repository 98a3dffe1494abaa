"""Replies that are shown while the model writes: published sentence by sentence, checked, resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from apps.agents.models import Agent, AgentPolicy
from apps.calls.services.leased_calls import LeasedCall
from apps.contacts.models import ChatMessage, PartialReply
from apps.contacts.services import partial_replies
from apps.contacts.services.chat import end_session, exchange_turns, receive_turn
from apps.contacts.services.partial_replies import ReplyPublisher, read_progress
from apps.heartbeats.services.calls import calls
from apps.heartbeats.services.calls.calls import execute_call
from apps.maintenance.services.recovery import recover_maintenance_calls
from apps.selves.models import Boundary
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.reply_progress import ReplyFollower, ReplyProgress
from arbor.contacts.values import Speaker
from arbor.errors import EmbeddingFailed, ModelUnavailable, NotFound
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage, ScriptedStream, TextSink
from tests.integration.chat.conftest import Script, Talk, model_answer, open_chat
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


class Watched:
    """The pieces of a reply; what a reader of the turn sees is recorded after each."""

    def __init__(self, agent: Agent, text: str, size: int = 5) -> None:
        self.seen: list[str] = []
        self._agent = agent
        self._pieces = [text[at : at + size] for at in range(0, len(text), size)]

    def __iter__(self) -> Iterator[str]:
        follower = ReplyFollower()
        for piece in self._pieces:
            yield piece
            self.seen += [event.text or event.kind for event in follower.advance(progress_of(self._agent))]


def turn_of(agent: Agent) -> ChatMessage:
    with tenant_transaction(agent.tenant_id):
        return ChatMessage.objects.filter(speaker=Speaker.USER).latest("at")


def progress_of(agent: Agent) -> ReplyProgress:
    turn = turn_of(agent)
    with tenant_transaction(agent.tenant_id):
        return read_progress(turn_id=turn.id)


def test_sentences_are_shown_while_the_model_writes(talk: Talk, agent: Agent, scripted: Script) -> None:
    watched = Watched(agent, model_answer(REPLY, thinking="Tides."))
    scripted(ScriptedStream(pieces=watched))

    answer = talk("When may I come?")

    assert watched.seen == ["The tide is high now.", " The bridge opens at nine."]
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


def test_a_boundary_in_the_middle_ends_what_is_shown(
    talk: Talk, agent: Agent, scripted: Script, boundary: Boundary
) -> None:
    text = "The tide is high now. The gate code is 4711. Come at eight!"
    watched = Watched(agent, model_answer(text))
    scripted(ScriptedStream(pieces=watched))

    answer = talk("When may I come?")

    assert watched.seen == ["The tide is high now."]
    assert "4711" not in answer.content
    assert answer.content.startswith("I do not say what I was about to say")
    progress = progress_of(agent)
    assert progress.answer is not None
    assert progress.answer.is_withheld
    assert "4711" not in json.dumps([*progress.sentences])


def test_another_try_of_the_model_begins_anew(talk: Talk, agent: Agent, scripted: Script) -> None:
    broken = Watched(agent, '{"thinking": "", "reply": "One thing is sure. And this is ')
    again = Watched(agent, model_answer(REPLY))
    scripted(ScriptedStream(pieces=broken, error=ModelUnavailable("cut")), ScriptedStream(pieces=again))
    with tenant_transaction(agent.tenant_id):
        AgentPolicy.objects.create(
            tenant_id=agent.tenant_id, agent=agent, tier_models={"standard": ["scripted/a", "scripted/b"]}
        )

    answer = talk("When may I come?")

    assert broken.seen == ["One thing is sure."]
    assert again.seen[0] == "One thing is sure."
    assert "".join(again.seen[1:]) == "restartThe tide is high now. The bridge opens at nine."
    assert answer.content == REPLY


def test_an_answer_that_comes_at_once_is_read_by_the_same_path(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
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


def test_without_an_embedder_sentences_wait_for_the_whole(
    talk: Talk, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(**_: object) -> None:
        raise EmbeddingFailed("down")

    monkeypatch.setattr(partial_replies, "embed_query", down)
    scripted(ScriptedStream(pieces=[model_answer(REPLY)]))

    assert talk("When may I come?").content == REPLY
    assert progress_of(agent).sentences == []


def leased(agent: Agent, turn_id: UUID, attempt: int) -> LeasedCall:
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
    stale, current = (ReplyPublisher(leased(agent, turn.id, attempt)) for attempt in (1, 2))

    stale('{"reply": "One thing is sure. ')
    current('{"reply": "The tide is high now. ')
    stale("A second thing is not. ")
    current("The bridge is up. ")

    progress = progress_of(agent)
    assert (progress.attempt, progress.sentences) == (2, ["The tide is high now.", " The bridge is up."])


def test_a_turn_of_another_tenant_is_not_found(agent: Agent, other_tenant: Tenant, talk: Talk) -> None:
    talk("Hello?")
    turn = turn_of(agent)

    with tenant_transaction(other_tenant.id), pytest.raises(NotFound):
        read_progress(turn_id=turn.id)


def test_the_end_of_a_conversation_deletes_its_partial_replies(
    talk: Talk, agent: Agent, scripted: Script
) -> None:
    scripted(ScriptedStream(pieces=[model_answer(REPLY)]))
    talk("When may I come?")
    with tenant_transaction(agent.tenant_id):
        partial = PartialReply.objects.get()
        assert str(partial) == "2 sentences of attempt 1"
        end_session(session_id=open_chat_of(agent))
        assert not PartialReply.objects.exists()


def open_chat_of(agent: Agent) -> UUID:
    return ChatMessage.objects.filter(session__agent_id=agent.id).latest("at").session_id


def test_only_conversations_are_streamed(
    talk: Talk, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[LeasedCall] = []

    def publisher_of(call: LeasedCall) -> TextSink:
        published.append(call)
        return lambda _: None

    monkeypatch.setattr(calls, "ReplyPublisher", publisher_of)
    scripted(model_answer(REPLY), repeat=True)

    exchange_turns(
        tenant_id=agent.tenant_id, session_id=open_chat(agent).id, text="Are you there?", execute=execute_call
    )
    calls._ask(replace(leased(agent, turn_of(agent).id, 1), request=a_thought()))

    assert [call.request.purpose for call in published] == [CallPurpose.CHAT]


def a_thought() -> ModelRequest:
    return ModelRequest(
        purpose=CallPurpose.WEIGH, system="", messages=(PromptMessage(role="user", content=""),)
    )


def test_a_lost_worker_leaves_an_end_that_readers_see(agent: Agent, scripted: Script) -> None:
    def killed() -> Iterator[str]:
        yield '{"thinking": "", "reply": "One thing is sure. And this'
        raise KeyboardInterrupt

    scripted(ScriptedStream(pieces=killed()), repeat=True)
    with pytest.raises(KeyboardInterrupt):
        exchange_turns(
            tenant_id=agent.tenant_id,
            session_id=open_chat(agent).id,
            text="Are you there?",
            execute=execute_call,
        )
    follower = ReplyFollower()
    assert [event.text for event in follower.advance(progress_of(agent))] == ["One thing is sure."]

    move_into_past(agent, timedelta(minutes=10))
    recover_maintenance_calls()

    (event,) = follower.advance(progress_of(agent))
    assert (event.kind, "did not come back" in event.text) == ("error", True)
