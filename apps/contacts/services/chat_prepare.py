"""Prepare a conversation's turn (seed 000, 7, `prepare_query`): gather the agent's view and render the prompt."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models.expressions import RawSQL

from apps.agents.models import Agent, AgentState
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.calls.services.token_ratios import ratio_objects, ratios_of
from apps.contacts.models import ChatMessage
from apps.contacts.services.chat_finalize import match_detail
from apps.contacts.services.chat_knowledge import search_for_turn
from apps.contacts.services.chat_turns import texts_shown_before, turns_before
from apps.goals.models import Goal
from apps.knowledge.services.skill_texts import skill_views, skills_column
from apps.memories.services.recall.activation import record_recall
from apps.memories.services.recall.recaller import recall
from apps.memories.services.store.snippets import QUERY_LENGTH as CODE_QUERY_LENGTH
from apps.memories.services.store.snippets import find_code
from apps.providers import token_counters
from apps.selves.models import Belief, IdentityAspect, Preference
from apps.selves.services.boundaries import match_boundaries
from apps.selves.services.inner_state import mood_of
from apps.selves.services.salience import (
    ASPECT_COLUMNS,
    BELIEF_COLUMNS,
    PREFERENCE_COLUMNS,
    SelfRows,
    choose_self,
)
from apps.selves.services.self_knowledge import system_prompt_of
from apps.tenants.scope import tenant_transaction
from arbor.contacts.chat_prompt import SCHEMA, SCHEMA_NAME, build_chat_prompt
from arbor.contacts.chat_room import cut_of, reply_limit, require_room
from arbor.contacts.chat_view import ChatBoundaryMatch, ChatView, CodeView
from arbor.goals.values import GoalState
from arbor.heartbeat.prompts.fitting import CutContext
from arbor.heartbeat.prompts.prompt import Prompt
from arbor.heartbeat.situation import MemoryView
from arbor.heartbeat.views import MoodView
from arbor.heartbeat.working_memory import MAX_GOALS, WorkingMemory, with_goals
from arbor.memory.episodes import summarized_episode
from arbor.memory.recall.recall_request import QUERY_LENGTH, RecallRequest, SessionLimit
from arbor.memory.values import HEARTBEATS_SESSION, Recalled
from arbor.models.handles import is_reflex
from arbor.models.ports import CallPurpose, ModelRequest, PromptMessage
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import estimate_tokens
from arbor.models.windows import PromptLimits, prompt_limits, window_of
from arbor.selves.boundary_check import BoundaryMatch
from arbor.selves.memory_filters import CONSIDERED, BeliefFilter, apply_filters, filters_of
from arbor.selves.self_knowledge import self_knowledge_of
from arbor.selves.values import BeliefStatus

#: The recalled memories that a prompt shows, as many as at a heartbeat.
RELEVANT_SHOWN = 5
_CANDIDATES = RELEVANT_SHOWN * CONSIDERED
CODE_SHOWN = 3
#: As in heartbeats.
TEMPERATURE = 0.7


@dataclass(frozen=True, kw_only=True)
class PreparedRequest:
    """A prepared request, and its sources."""

    request: ModelRequest
    #: `provider/model`, and its fallbacks in order.
    model: str
    models_left: Sequence[str]
    #: The prompt's sections: [{name, text, tokens, cut}].
    sections: Sequence[dict[str, Any]]
    #: [{id, score}]
    recalled: Sequence[dict[str, Any]]
    #: Boundary matches of the person's turn, as its row stores them.
    boundary_matches: Sequence[dict[str, Any]]
    #: The origins of the summaries of earlier turns, as `TurnSummary` without its text.
    summarized: Sequence[dict[str, Any]] = ()
    #: The parts that the prompt leaves out, and the window to which it was cut.
    cut: CutContext | None = None
    window: int = 0


def prepare(*, tenant_id: UUID, turn_id: UUID, models: Sequence[str]) -> PreparedRequest:
    """Gather the agent's view of a turn, and render the prompt. Outside any transaction, because texts are embedded.

    `models` are those of `models_at`. Recalled memories count as used by the agent.
    """
    with tenant_transaction(tenant_id):
        turn: ChatMessage = ChatMessage.objects.select_related("session__agent").get(id=turn_id)
        agent: Agent = turn.session.agent
        filters = _filters(agent.id)
        # Rules answer from what they recall, also of this conversation.
        turn_texts = frozenset[str]() if any(map(is_reflex, models)) else texts_shown_before(turn)
    # The first call reads the files of the tokenizers, so it is made outside transactions.
    counters = token_counters()
    matched = match_boundaries(tenant_id=tenant_id, agent_id=agent.id, text=turn.content)
    relevant = _recall_for_turn(turn, filters, turn_texts)
    knowledge = search_for_turn(tenant_id=tenant_id, agent_id=agent.id, text=turn.content, recalled=relevant)
    with tenant_transaction(tenant_id):
        if relevant:
            record_recall(agent_id=agent.id, recalled={memory.id: memory.score for memory in relevant})
        state = _state(agent.id)
        self_rows = _self_rows(agent.id)
        # The prompt must fit into the window of every model that may be asked.
        ratios = ratios_of(state.token_ratios)
        limits = prompt_limits(
            models,
            otherwise=settings.ARBOR_MODEL_CONTEXT,
            reply_tokens=settings.ARBOR_MODEL_MAX_TOKENS,
            ratios=ratios,
            tokenizers=counters,
        )
        count = counters.get(limits.tokenizer, estimate_tokens)
        view = _view(turn, state, self_rows, relevant, matched, count).model_copy(
            update={
                "passages": list(knowledge.passages),
                "search_faults": list(knowledge.faults),
            }
        )
    prompt = build_chat_prompt(
        view,
        system_prompt_of(agent, self_knowledge_of(self_rows.aspects)),
        nonce=secrets.token_hex(8),
        window=limits.window,
        reply_tokens=limits.reply_tokens,
        count=count,
    )
    require_room(prompt, limits, models)
    return PreparedRequest(
        request=_model_request(prompt, view, limits, models=models, ratios=ratios),
        model=models[0],
        models_left=models[1:],
        sections=[section._asdict() for section in prompt.sections],
        recalled=[{"id": str(memory.id), "score": round(memory.score, 4)} for memory in relevant],
        boundary_matches=[match_detail(match, withheld=False) for match in matched],
        summarized=[summary.model_dump(mode="json", exclude={"text"}) for summary in view.summaries],
        cut=cut_of(prompt, view, models),
        window=limits.window,
    )


def store_preparation(turn: ChatMessage, *, prepared: PreparedRequest) -> None:
    """Store with a person's turn its boundary matches and the summaries of earlier turns, and audit the cuts of the prompt.

    Runs in the open transaction; without any of these, no statement.
    """
    detail: dict[str, Any] = {}
    if prepared.boundary_matches:
        detail["boundaries"] = list(prepared.boundary_matches)
    if prepared.summarized:
        detail["summarized"] = list(prepared.summarized)
    if detail:
        turn.detail = {**turn.detail, **detail}
        turn.save(update_fields=["detail"])
    if prepared.cut is None:
        return
    agent = agent_by_id(turn.session.agent_id)
    record(
        action=AuditAction.TRUNCATED,
        actor=f"agent:{agent.public_id}",
        agent_id=agent.id,
        message=f"the prompt of an answer was cut to the window of {prepared.model}: {prepared.cut.in_words}",
        detail={
            "conversation": str(turn.session_id),
            "turn": str(turn.id),
            **prepared.cut.to_json(model=prepared.model, window=prepared.window),
        },
    )


def _recall_for_turn(
    turn: ChatMessage, filters: Sequence[BeliefFilter], turn_texts: Set[str]
) -> list[Recalled]:
    """Recall memories for a turn, as the agent's beliefs filter them; the caller records the recall.

    `turn_texts` are left out, because the prompt shows these turns. At most half are narratives of the agent's own heartbeats.
    """
    request = RecallRequest(
        agent_id=turn.session.agent_id,
        text=turn.content[:QUERY_LENGTH],
        limit=_CANDIDATES,
        session_limit=SessionLimit(session=HEARTBEATS_SESSION, most=RELEVANT_SHOWN // 2),
    )
    found = recall(tenant_id=turn.tenant_id, request=request, counts=False)
    fitting = [memory for memory in found if memory.content not in turn_texts]
    return apply_filters(fitting, filters)[:RELEVANT_SHOWN]


def _model_request(
    prompt: Prompt,
    view: ChatView,
    limits: PromptLimits,
    *,
    models: Sequence[str],
    ratios: Mapping[str, float],
) -> ModelRequest:
    windows = {handle: window_of(handle, otherwise=settings.ARBOR_MODEL_CONTEXT) for handle in models}
    # Only the reflex policy reads the view that the prompt was rendered from.
    reads_view = any(is_reflex(handle) for handle in models)
    return ModelRequest(
        purpose=CallPurpose.CHAT,
        system=prompt.system,
        messages=(PromptMessage(role="user", content=prompt.user),),
        schema=SCHEMA,
        schema_name=SCHEMA_NAME,
        max_tokens=reply_limit(
            prompt, limits, windows=windows, ratios=ratios, reply=settings.ARBOR_MODEL_MAX_TOKENS
        ),
        temperature=TEMPERATURE,
        context=view.model_dump(mode="json") if reads_view else {},
    )


def _view(
    turn: ChatMessage,
    state: Any,
    self_rows: SelfRows,
    relevant: Sequence[Recalled],
    matched: Sequence[BoundaryMatch],
    count: CountTokens,
) -> ChatView:
    agent, now = turn.session.agent, datetime.now(UTC)
    earlier = turns_before(turn, count=count)
    return ChatView(
        name=agent.name,
        person=turn.session.person,
        message=turn.content,
        client_note=turn.detail.get("client_note", ""),
        now=now,
        hours_since_user=_hours_before(turn),
        skills=skill_views([state.skills])[0],
        **choose_self(self_rows, about=turn.content, now=now),
        mood=_mood_view(agent.id, state.mood, now),
        # Goals may have changed since the last heartbeat.
        working_memory=with_goals(WorkingMemory.model_validate(state.working_memory), state.active_goals),
        relevant=[_memory_view(memory) for memory in relevant],
        code=[
            CodeView(language=row.language, title=row.title, code=row.code)
            for row in find_code(agent_id=agent.id, text=turn.content[:CODE_QUERY_LENGTH], limit=CODE_SHOWN)
        ],
        boundary_matches=[
            ChatBoundaryMatch(
                name=match.boundary.name,
                description=match.boundary.description,
                response=match.boundary.response.value,
                why=match.why,
            )
            for match in matched
        ],
        turns=list(earlier.shown),
        summaries=list(earlier.summaries),
        earlier=earlier.not_shown,
        earlier_tokens=earlier.not_shown_tokens,
    )


def _state(agent_id: UUID) -> Any:
    """Read the agent's state with `active_goals`, the titles of its active goals, latest touched first, `token_ratios` and `skills`."""
    active = Goal.objects.filter(agent_id=agent_id, state=GoalState.ACTIVE).order_by("-touched_at")
    titles = ArraySubquery(active.values("title")[:MAX_GOALS])
    ratios = ArraySubquery(ratio_objects())
    column = skills_column(tenant="agents_agentstate.tenant_id", agent="agents_agentstate.agent_id")
    # The driver parses json.
    skills = RawSQL(column, ())  # noqa: S611 (no external input)
    return AgentState.objects.annotate(active_goals=titles, token_ratios=ratios, skills=skills).get(
        agent_id=agent_id
    )


def _hours_before(turn: ChatMessage) -> float | None:
    before = turn.detail.get("contact_before")
    if before is None:
        return None
    return max(0.0, (turn.at - datetime.fromisoformat(before)) / timedelta(hours=1))


def _self_rows(agent_id: UUID) -> SelfRows:
    """Read the aspects, beliefs and preferences of an agent."""
    aspects = IdentityAspect.objects.filter(agent_id=agent_id).exclude(status=BeliefStatus.DROPPED)
    beliefs = Belief.objects.filter(agent_id=agent_id).exclude(status=BeliefStatus.DROPPED)
    preferences = Preference.objects.filter(agent_id=agent_id)
    return SelfRows(
        aspects=list(aspects.order_by("-stability", "id").values(*ASPECT_COLUMNS)),
        beliefs=list(beliefs.order_by("id").values(*BELIEF_COLUMNS)),
        preferences=list(preferences.values(*PREFERENCE_COLUMNS)),
    )


def _filters(agent_id: UUID) -> list[BeliefFilter]:
    beliefs = Belief.objects.filter(agent_id=agent_id, status=BeliefStatus.HELD).exclude(filters=[])
    return filters_of(beliefs.order_by("id").values("confidence", "status", "filters"))


def _mood_view(agent_id: UUID, stored: Mapping[str, Any], now: datetime) -> MoodView:
    mood = mood_of(agent_id, stored, now)
    return MoodView(valence=mood.valence, arousal=mood.arousal)


def _memory_view(memory: Recalled) -> MemoryView:
    return MemoryView(
        id=str(memory.id),
        type=memory.type,
        content=memory.content,
        role=memory.role,
        episode=str(summarized_episode(memory.session) or ""),
        at=memory.occurred_at,
        importance=memory.importance,
        score=round(memory.score, 4),
        details=list(memory.details),
    )
