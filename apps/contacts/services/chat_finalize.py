"""Finish a conversation's turn (seed 000, 7, `finalize_query`): store the answer and its effects.

All of it is written in the transaction that stores the model's reply, so a turn is answered once or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Max

from apps.agents.models import AgentState, HeartbeatSchedule
from apps.agents.services.identity import identity_of
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.reflexes import reflex_terms
from apps.contacts.models import ChatMessage, ChatSession
from apps.memories.services.embedding.embedding import EmbeddedTexts, embed_agent_texts
from apps.memories.services.store.remember import store
from apps.memories.services.store.snippets import store_agent_code
from apps.selves.services.boundaries import match_boundaries
from apps.selves.services.inner_state import mood_of
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.authority.reflexes import REPLY, ReflexMatch, find_secret, reflex_of
from arbor.contacts.chat import name_of_person, thought_of_turn
from arbor.contacts.chat_reply import ChatReply
from arbor.contacts.values import Speaker
from arbor.heartbeat.working_memory import WorkingMemory, after_turn, as_stored
from arbor.memory.conversations.turns import Turn
from arbor.memory.text.code import left_out_code
from arbor.memory.values import NewMemory
from arbor.models.handles import is_reflex
from arbor.models.json_text import storable
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.boundary_check import BoundaryMatch, may_proceed
from arbor.selves.emotions import Event
from arbor.signals import SignalName, signal
from arbor.values import replace


@dataclass(frozen=True, kw_only=True)
class PreparedAnswer:
    """The answer of a turn and its memories, prepared outside any transaction."""

    reply: str
    thinking: str
    #: Boundary matches of the answer: [{name, response, why, withheld}].
    boundary_matches: Sequence[dict[str, Any]]
    #: The person's turn and the answer as memories, and their vectors.
    memories: Sequence[NewMemory]
    embedded: EmbeddedTexts
    #: Parts of the model's text that are not in the answer.
    left_out: Sequence[str] = ()
    #: The reflex that withheld the answer.
    reflex: ReflexMatch | None = None

    @property
    def withheld_by(self) -> list[str]:
        """Return a line for the reflex and for each boundary that withheld the answer."""
        return [
            *([f"withheld by a reflex: {self.reflex.what}"] if self.reflex is not None else []),
            *(
                f"withheld by the boundary {match['name']}: {match['why']}"
                for match in self.boundary_matches
                if match["withheld"]
            ),
        ]


def prepare_answer(
    tenant_id: UUID, agent_id: UUID, *, subject: Mapping[str, Any], chat_reply: ChatReply
) -> PreparedAnswer:
    """Check the answer against the reflexes and the agent's boundaries, and embed both turns."""
    permitted, reflex = _without_secrets(chat_reply)
    matched = match_boundaries(tenant_id=tenant_id, agent_id=agent_id, text=permitted.reply)
    withheld = [match for match in matched if not may_proceed(match.boundary, permitted.thinking)]
    reply = _refusal(withheld) if withheld else permitted.reply
    with tenant_transaction(tenant_id):
        asked, position = _asked_turn(subject)
        memories = [_memory(asked, asked.content, position), _memory(asked, reply, position + 1, own=True)]
    return PreparedAnswer(
        reply=reply,
        thinking=permitted.thinking,
        boundary_matches=[match_detail(match, withheld=match in withheld) for match in matched],
        memories=memories,
        embedded=embed_agent_texts(
            tenant_id=tenant_id, agent_id=agent_id, texts=[memory.content for memory in memories]
        ),
        left_out=permitted.left_out,
        reflex=reflex,
    )


def _without_secrets(chat_reply: ChatReply) -> tuple[ChatReply, ReflexMatch | None]:
    """Return the answer as it may be given, and the reflex that withholds it, if any.

    A withheld answer is replaced as a whole, because any part of it may contain the secret.
    """
    terms = reflex_terms()
    reflex = reflex_of(REPLY, [chat_reply.reply, *chat_reply.left_out], terms=terms)
    if reflex is not None:
        return ChatReply(reply=f"I do not say what I was about to say: {reflex.what}."), reflex
    if find_secret(chat_reply.thinking, terms.own_secrets) is not None:
        return replace(chat_reply, thinking=""), None
    return chat_reply, None


def store_answer(
    agent_id: UUID, subject: Mapping[str, Any], answer: PreparedAnswer, by: str
) -> Sequence[str]:
    """Store the agent's turn and update memory, code snippets, timer and working memory.

    `by` is the model that answered. Returns what was withheld or left out of its reply, one line each. The whole reply is
    withheld if the identity of the agent was suspended or revoked since the model was asked.
    """
    if refusal := identity_of(agent_id).refusal:
        store_silence(agent_id, subject, f"the answer is withheld: {refusal}")
        return [f"withheld: {refusal}"]
    asked, _ = _asked_turn(subject)
    session, now = asked.session, datetime.now(UTC)
    left_out = [*answer.left_out, *_code_left_out(asked.content, answer.reply)]
    turn = ChatMessage.objects.create(
        tenant_id=current_tenant(),
        session=session,
        speaker=Speaker.AGENT,
        content=answer.reply,
        model=by,
        detail={
            "to": str(asked.id),
            "thinking": answer.thinking,
            "recalled": subject.get("recalled", []),
            **({"boundaries": list(answer.boundary_matches)} if answer.boundary_matches else {}),
            **({"left_out": left_out} if left_out else {}),
            **({"reflex": answer.reflex.kind.value} if answer.reflex is not None else {}),
        },
        at=now,
    )
    emit_turn(turn, agent_id=agent_id)
    # Lock in the order of heartbeats, to avoid deadlocks: schedule, mind, state.
    _resume_timer(session, now)
    # Answers by rule quote memories; stored as memories, they would be quoted again and again.
    stored = slice(1) if is_reflex(by) else slice(None)
    vectors = answer.embedded.vectors
    store(
        agent_id=agent_id,
        memories=answer.memories[stored],
        vectors=None if vectors is None else vectors[stored],
        model=answer.embedded.model,
    )
    store_agent_code(agent_id=agent_id, texts=[asked.content, answer.reply], source=f"chat:{session.id}")
    _update_working_memory(agent_id, asked, answer, now)
    _audit_boundary_matches(asked, arrived=_matches_of_turn(asked), own=answer.boundary_matches)
    _audit_reflex(asked, answer.reflex)
    return [*answer.withheld_by, *left_out]


def store_silence(
    agent_id: UUID, subject: Mapping[str, Any], reason: str, *, is_canceled: bool = False
) -> None:
    """Store the reason why there is no answer as the agent's turn, and remember the person's turn."""
    asked, position = _asked_turn(subject)
    now = datetime.now(UTC)
    left_out = _code_left_out(asked.content)
    turn = ChatMessage.objects.create(
        tenant_id=current_tenant(),
        session=asked.session,
        speaker=Speaker.AGENT,
        content="",
        detail={
            "to": str(asked.id),
            **({"left_out": left_out} if left_out else {}),
            **({"canceled": True} if is_canceled else {}),
        },
        error=storable(reason),
        at=now,
    )
    emit_turn(turn, agent_id=agent_id)
    _resume_timer(asked.session, now)
    store(agent_id=agent_id, memories=[_memory(asked, asked.content, position)], vectors=None)
    store_agent_code(agent_id=agent_id, texts=[asked.content], source=f"chat:{asked.session_id}")
    state = AgentState.objects.select_for_update().filter(agent_id=agent_id).first()
    if state is not None:
        _apply_turn_to_state(state, asked, own=(), now=now)
        state.save(update_fields=["mood", "stale_heartbeats"])
    _audit_boundary_matches(asked, arrived=_matches_of_turn(asked), own=())


def emit_turn(turn: ChatMessage, *, agent_id: UUID) -> None:
    """Emit the signal of a new turn."""
    emit(
        signal(
            SignalName.CHAT_MESSAGE_ADDED,
            agent_id,
            conversation=turn.session_id,
            turn=turn.id,
            speaker=Speaker(turn.speaker).value,
        )
    )


def match_detail(match: BoundaryMatch, *, withheld: bool) -> dict[str, Any]:
    """Return a boundary match as the row of a turn stores it."""
    return {
        "name": match.boundary.name,
        "response": match.boundary.response.value,
        "why": storable(match.why),
        "withheld": withheld,
    }


def _refusal(withheld: Sequence[BoundaryMatch]) -> str:
    named = {match.boundary.name: match for match in withheld}
    whys = "; ".join(
        f"{match.boundary.name.replace('_', ' ')}: {match.boundary.description or match.why}"
        for match in named.values()
    )
    return f"I do not say what I was about to say, because of a boundary of mine ({whys})"


def _matches_of_turn(asked: ChatMessage) -> list[dict[str, Any]]:
    """Return the boundary matches of the person's turn, as its row stores them."""
    return list(asked.detail.get("boundaries", []))


def _code_left_out(*texts: str) -> list[str]:
    return [code for text in texts for code in left_out_code(storable(text))]


def _asked_turn(subject: Mapping[str, Any]) -> tuple[ChatMessage, int]:
    """Return the answered turn, and its position in the conversation."""
    asked: ChatMessage = ChatMessage.objects.select_related("session").get(id=UUID(subject["turn"]))
    position = ChatMessage.objects.filter(session_id=asked.session_id, at__lt=asked.at).count()
    return asked, position


def _memory(asked: ChatMessage, text: str, position: int, *, own: bool = False) -> NewMemory:
    turn = Turn(
        line=position,
        session=f"chat:{asked.session_id}",
        position=position,
        speaker=(Speaker.AGENT if own else Speaker.USER).value,
        text=text,
        # Later than the question, so that the order by time is right.
        at=asked.at + timedelta(milliseconds=1) if own else asked.at,
    )
    return turn.as_memory(source=f"chat:{asked.session_id}")


def _resume_timer(session: ChatSession, now: datetime) -> None:
    ChatSession.objects.filter(id=session.id).update(last_at=now)
    # The pause for the answer is over; the timer still pauses until the person is idle.
    resume_schedule(agent_id=session.agent_id)


def _update_working_memory(agent_id: UUID, asked: ChatMessage, answer: PreparedAnswer, now: datetime) -> None:
    """Update the working memory: thought, person, engagement, questions since the last maintenance.

    The mood and the count of heartbeats without novelty change with it.
    """
    state = AgentState.objects.select_for_update().filter(agent_id=agent_id).first()
    if state is None:
        return
    person = name_of_person(asked.session.person)
    memory = after_turn(
        WorkingMemory.model_validate(state.working_memory),
        thinking=answer.thinking or thought_of_turn(person, asked.content),
        human=person,
        conversation=str(asked.session_id),
        now=now,
    )
    # Through JSON, so that the stored value is the one whose size was checked.
    state.working_memory = WorkingMemory.model_validate_json(as_stored(memory)).model_dump(mode="json")
    _apply_turn_to_state(state, asked, own=answer.boundary_matches, now=now)
    state.save(update_fields=["working_memory", "mood", "stale_heartbeats"])


def _apply_turn_to_state(
    state: AgentState, asked: ChatMessage, *, own: Sequence[Mapping[str, Any]], now: datetime
) -> None:
    """Change a locked state, which the caller saves, as a message does at a heartbeat.

    A turn moves the mood, by contact and by boundary matches, and counts as something new
    (`arbor.heartbeat.steps.inner_state.met_something_new`). `own` are the boundary matches of the answer, as the turn's row stores them.
    """
    names = _mood_moving_names(_matches_of_turn(asked), own)
    events = [Event.CONTACT, *(Event.BOUNDARY for _ in names)]
    state.mood = mood_of(state.agent_id, state.mood, now).moved(events).model_dump(mode="json")
    state.stale_heartbeats = 0


def _audit_boundary_matches(
    asked: ChatMessage, *, arrived: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]
) -> None:
    """Audit the boundary matches of a turn in the open transaction. Without matches, no statement."""
    if not arrived and not own:
        return
    agent = agent_by_id(asked.session.agent_id)
    acts = [
        *((f"what {asked.session.person} said touches", match) for match in arrived),
        *((f"an answer was {'withheld' if match['withheld'] else 'given'} at", match) for match in own),
    ]
    for what, match in acts:
        record(
            action=AuditAction.BOUNDARY,
            actor=f"agent:{agent.public_id}",
            agent_id=agent.id,
            message=f"{what} {match['name']} ({match['response']}): {match['why']}",
            detail={**match, "conversation": str(asked.session_id), "turn": str(asked.id)},
        )


def _audit_reflex(asked: ChatMessage, reflex: ReflexMatch | None) -> None:
    if reflex is None:
        return
    agent = agent_by_id(asked.session.agent_id)
    record(
        action=AuditAction.REFLEX,
        actor=f"agent:{agent.public_id}",
        agent_id=agent.id,
        message=f"an answer was withheld: {reflex.what}",
        detail={
            "kind": reflex.kind.value,
            "conversation": str(asked.session_id),
            "turn": str(asked.id),
        },
    )


def _mood_moving_names(arrived: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the boundaries that move the mood: matched by the person's turn and not only flagged, or withholding the answer."""
    return {
        *(match["name"] for match in arrived if match["response"] != BoundaryResponse.FLAG),
        *(match["name"] for match in own if match["withheld"]),
    }


def resume_schedule(*, agent_id: UUID) -> None:
    """Resume the agent's heartbeats: at once, or when its open conversations are idle."""
    last = ChatSession.objects.filter(agent_id=agent_id, ended_at__isnull=True).aggregate(last=Max("last_at"))
    until = last["last"] and last["last"] + settings.ARBOR_CHAT_IDLE
    HeartbeatSchedule.objects.filter(agent_id=agent_id).update(paused_until=until)
