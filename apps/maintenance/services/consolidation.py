"""Enqueue maintenance calls that summarize episodes, extract concepts and appraise memories, or do so by rule."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections

from apps.agents.services.locks import lock_schedule
from apps.calls.models import CallStatus
from apps.calls.services.maintenance_calls import (
    MaintenanceCall,
    enqueue_maintenance_call,
    subject_of_episode,
    subject_of_memories,
)
from apps.calls.services.usage import budget_status_of
from apps.maintenance.services.facts import ConversationFact, conversation_of, propose_facts, with_people
from apps.maintenance.services.recovery import recover_maintenance_calls
from apps.memories.services.embedding.embedding import embed_agent_texts
from apps.memories.services.jobs.episodes import close_episodes
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.jobs.maintenance_flags import (
    MaintenanceFlag,
    agents_with,
    store_concepts,
    waiting_memories,
)
from apps.memories.services.jobs.remembered_summaries import remember_summaries
from apps.memories.services.jobs.summaries import (
    Summary,
    UnsummarizedEpisode,
    agents_with_unsummarized,
    store_summaries,
    unsummarized_episodes,
)
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.maintenance.calls import Excerpt, left_out_of_prompt, maintenance_request
from arbor.memory.text.extraction import concepts_in
from arbor.memory.text.facts import facts_in
from arbor.memory.text.summary import SpokenText, extractive_summary
from arbor.models.handles import REFLEX_HANDLE, is_reflex
from arbor.models.ports import CallPurpose, ModelRequest

#: The most episodes of one step; the most memories of one maintenance call, for concepts (seed 004, 6.1) and for appraisals; and the
#: most memories of one step by rule.
SUMMARY_BATCH = 5
EXTRACT_BATCH = 10
APPRAISAL_BATCH = 20
RULE_BATCH = 50
#: Memories up to which an episode needs no model for its summary.
SHORT_EPISODE = 2
#: Open maintenance calls of one agent and purpose at most.
MAX_OPEN_OF_AGENT = 20
#: Time after a call's final failure in which its agent gets no new ones of that purpose, because the cause may persist.
PAUSE_AFTER_FAILURE = timedelta(hours=1)
#: Duration of one job run: three of them fit into a period of one minute.
_JOB_RUN_DURATION = timedelta(seconds=15)

_UNFINISHED = """
SELECT status, subject FROM calls_externalcall
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND purpose = %(purpose)s
    AND errand_status IN ('pending', 'running', 'failed')
"""
_OPEN = """
SELECT count(*) FILTER (WHERE tenant_id = %(tenant)s),
    count(DISTINCT tenant_id) FILTER (WHERE tenant_id <> %(tenant)s)
FROM calls_externalcall
WHERE errand_status IN ('pending', 'running') AND (due_at IS NULL OR due_at <= now())
"""
# Agents of suspended tenants get no calls, nor do agents whose call of the purpose has failed within PAUSE_AFTER_FAILURE.
_MAY_ENQUEUE = """
AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
AND NOT EXISTS (
    SELECT FROM calls_externalcall c WHERE c.tenant_id = t.id AND c.agent_id = waits.agent_id
        AND c.purpose = '{purpose}' AND c.errand_status = 'failed'
        AND c.ended_at > now() - interval '{pause} seconds'
)
"""


def maintain_episodes() -> JobRunResult:
    """Close the episodes that are over, summarize closed ones after a delay, and store summaries as memories."""
    result = close_episodes()
    waiting = _select_allowed(agents_with_unsummarized(), CallPurpose.SUMMARIZE)
    result += run_job("summaries", waiting=waiting, step=_summarize, max_duration=_JOB_RUN_DURATION)
    return result + remember_summaries()


def consolidate() -> JobRunResult:
    """Recover lost maintenance calls, extract concepts of new memories, and appraise memories."""
    result = recover_maintenance_calls()
    extracting = agents_with(MaintenanceFlag.EXTRACT)
    if settings.ARBOR_MAINTENANCE_MODEL:
        extracting = _select_allowed(extracting, CallPurpose.EXTRACT)
    result += run_job("concepts", waiting=extracting, step=_extract, max_duration=_JOB_RUN_DURATION)
    if settings.ARBOR_MAINTENANCE_MODEL and settings.ARBOR_APPRAISE_MEMORIES:
        waiting = _select_allowed(agents_with(MaintenanceFlag.APPRAISE), CallPurpose.APPRAISE_MEMORIES)
        result += run_job("appraisals", waiting=waiting, step=_appraise, max_duration=_JOB_RUN_DURATION)
    return result


def maintenance_model() -> str:
    """Return the model handle for maintenance calls; the reflex policy where none is configured."""
    return settings.ARBOR_MAINTENANCE_MODEL or str(REFLEX_HANDLE)


def _select_allowed(waiting: str, purpose: CallPurpose) -> str:
    """Return SQL for `run_job`: the agents that `waiting` selects and that may get calls of a purpose."""
    rule = _MAY_ENQUEUE.format(purpose=purpose.value, pause=PAUSE_AFTER_FAILURE.total_seconds())
    return f"SELECT waits.agent_id FROM ({waiting}) waits WHERE true {rule}"  # noqa: S608 (no external input)


def _summarize(tenant_id: UUID, agent_id: UUID) -> int:
    """Summarize up to a batch of an agent's closed episodes: long ones by a maintenance call, short ones by rule."""
    with tenant_transaction(tenant_id):
        unfinished = _unfinished(agent_id, CallPurpose.SUMMARIZE)
        with_calls = [
            UUID(subject["episode"]) for status, subject in unfinished if status != CallStatus.FAILED
        ]
        episodes = unsummarized_episodes(agent_id, limit=SUMMARY_BATCH, without=with_calls)
        short = [episode for episode in episodes if len(episode.excerpts) <= SHORT_EPISODE]
        if not short:
            # Long episodes may have to wait for calls, short ones do not wait behind them.
            short = unsummarized_episodes(
                agent_id, limit=SUMMARY_BATCH, without=with_calls, max_size=SHORT_EPISODE
            )
        long = [episode for episode in episodes if len(episode.excerpts) > SHORT_EPISODE][
            : _free_calls(tenant_id, agent_id, len(with_calls))
        ]
        done = sum(
            enqueue_maintenance_call(agent_id=agent_id, tenant_id=tenant_id, call=_summary_call(episode))
            for episode in long
        )
    return done + _summarize_by_rule(tenant_id, agent_id, short)


def _summary_call(episode: UnsummarizedEpisode) -> MaintenanceCall:
    return MaintenanceCall(
        subject=subject_of_episode(episode.episode_id, size=episode.size),
        request=_request(CallPurpose.SUMMARIZE, episode.excerpts),
        model=maintenance_model(),
        left_out=_left_out_notes(episode),
    )


def _left_out_notes(episode: UnsummarizedEpisode) -> list[str]:
    notes = list(left_out_of_prompt(episode.excerpts))
    if (unread := episode.size - len(episode.excerpts)) > 0:
        notes.append(
            f"prompt: left out, because archived or passed over: {unread:,} of the {episode.size:,} memories"
        )
    return notes


def _summarize_by_rule(tenant_id: UUID, agent_id: UUID, episodes: Sequence[UnsummarizedEpisode]) -> int:
    if not episodes:
        return 0
    summaries = [
        Summary(
            episode_id=episode.episode_id,
            size=episode.size,
            text=extractive_summary(
                [SpokenText(speaker=excerpt.role, text=excerpt.text) for excerpt in episode.excerpts]
            ),
            by=str(REFLEX_HANDLE),
        )
        for episode in episodes
    ]
    texts = [summary.text for summary in summaries]
    embedded = embed_agent_texts(tenant_id=tenant_id, agent_id=agent_id, texts=texts)
    with tenant_transaction(tenant_id):
        return store_summaries(agent_id, summaries=summaries, embedded=embedded)


def extract_by_rule(*, tenant_id: UUID, agent_id: UUID) -> int:
    """Extract the concepts of a batch of waiting memories by rule, and propose the facts that people state in them.

    Returns the number of memories whose concepts were stored.
    """
    with tenant_transaction(tenant_id):
        waiting = with_people(waiting_memories(agent_id, MaintenanceFlag.EXTRACT, limit=RULE_BATCH))
    concepts = {memory_id: concepts_in(excerpt.text) for memory_id, excerpt in waiting}
    facts = [
        ConversationFact(
            text=fact.text,
            confidence=fact.confidence,
            memory_id=memory_id,
            conversation=conversation_of(excerpt.session),
        )
        for memory_id, excerpt in waiting
        if excerpt.person
        for fact in facts_in(excerpt.text, speaker=excerpt.person)
    ]
    if not concepts:
        return 0
    with tenant_transaction(tenant_id):
        if facts:
            # Proposals lock the agent, concepts the mind.
            lock_schedule(agent_id)
        extracted = set(store_concepts(agent_id, concepts=concepts))
        propose_facts(agent_id=agent_id, facts=[fact for fact in facts if fact.memory_id in extracted])
    return len(extracted)


def _extract(tenant_id: UUID, agent_id: UUID) -> int:
    if not settings.ARBOR_MAINTENANCE_MODEL:
        return extract_by_rule(tenant_id=tenant_id, agent_id=agent_id)
    return _enqueue_call(tenant_id, agent_id, CallPurpose.EXTRACT, MaintenanceFlag.EXTRACT, EXTRACT_BATCH)


def _appraise(tenant_id: UUID, agent_id: UUID) -> int:
    return _enqueue_call(
        tenant_id, agent_id, CallPurpose.APPRAISE_MEMORIES, MaintenanceFlag.APPRAISE, APPRAISAL_BATCH
    )


def _enqueue_call(
    tenant_id: UUID, agent_id: UUID, purpose: CallPurpose, flag: MaintenanceFlag, batch: int
) -> int:
    """Enqueue a maintenance call about a batch of waiting memories without a call; return the number of memories."""
    with tenant_transaction(tenant_id):
        # One worker at a time selects memories of an agent, so no memory is in two calls.
        lock_minds([agent_id])
        unfinished = _unfinished(agent_id, purpose)
        if not _free_calls(tenant_id, agent_id, sum(status != CallStatus.FAILED for status, _ in unfinished)):
            return 0
        # Memories of failed calls are excluded too: they wait for a person.
        with_calls = {UUID(memory_id) for _, subject in unfinished for memory_id in subject["memories"]}
        waiting = waiting_memories(agent_id, flag, limit=batch, without=with_calls)
        if flag is MaintenanceFlag.EXTRACT:
            waiting = with_people(waiting)
        if not waiting:
            return 0
        excerpts = [excerpt for _, excerpt in waiting]
        call = MaintenanceCall(
            subject=subject_of_memories([memory_id for memory_id, _ in waiting]),
            request=_request(purpose, excerpts),
            model=maintenance_model(),
            left_out=left_out_of_prompt(excerpts),
        )
        return len(waiting) * enqueue_maintenance_call(agent_id=agent_id, tenant_id=tenant_id, call=call)


def _request(purpose: CallPurpose, excerpts: Sequence[Excerpt]) -> ModelRequest:
    # The nonce cannot be guessed, so no memory can close its data block and inject a prompt.
    return maintenance_request(purpose, excerpts, nonce=secrets.token_hex(8), for_rules=_is_by_rule())


def _is_by_rule() -> bool:
    return is_reflex(maintenance_model())


def _unfinished(agent_id: UUID, purpose: CallPurpose) -> list[tuple[str, dict[str, Any]]]:
    rows = fetch(_UNFINISHED, agent=agent_id, purpose=purpose.value)
    return [(status, json.loads(subject)) for status, subject in rows]


def _free_calls(tenant_id: UUID, agent_id: UUID, open_of_agent: int) -> int:
    """Return the number of maintenance calls that an agent may add.

    0 if the daily limit is used up: the memories wait until the next day. Rules cost nothing and have no daily limit.

    The tenants with open calls, and this one, share ARBOR_MAX_MAINTENANCE_CALLS equally. Calls that wait for a retry count
    only for their own agent.
    """
    if not _is_by_rule() and not budget_status_of(agent_id).level.may_maintain:
        return 0
    with connections[OPS].cursor() as cursor:
        cursor.execute(_OPEN, {"tenant": tenant_id})
        row: tuple[int, int] = cursor.fetchone()
    open_of_tenant, others = row
    share: int = max(1, settings.ARBOR_MAX_MAINTENANCE_CALLS // (others + 1))
    return max(0, min(MAX_OPEN_OF_AGENT - open_of_agent, share - open_of_tenant))
