"""The rounds in which maintenance summarizes episodes, takes concepts, and weighs memories: by rule, or by errands."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections

from apps.heartbeats.models import CallStatus
from apps.heartbeats.services.errands import Errand, ask
from apps.heartbeats.services.lost_errands import recover_errands
from apps.heartbeats.services.purposes import subject_of_episode, subject_of_memories
from apps.heartbeats.services.usage import day_of
from apps.memories.services.graph.extraction import extract_by_rule
from apps.memories.services.jobs.chores import Chore, agents_with, waiting_memories
from apps.memories.services.jobs.episodes import close_episodes
from apps.memories.services.jobs.rounds import Round, make_round
from apps.memories.services.jobs.summaries import (
    Summary,
    Unsummarized,
    agents_with_unsummarized,
    embed_summaries,
    store_summaries,
    unsummarized_episodes,
)
from apps.memories.services.store.remember import lock_minds
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.errands import Excerpt, errand_request, left_out_of_prompt
from arbor.memory.summary import Line, extractive_summary
from arbor.models.handles import REFLEX, REFLEX_HANDLE
from arbor.models.ports import CallPurpose, ModelRequest

#: Episodes in one step, and memories that one errand asks about (seed 004, 6.1).
SUMMARY_BATCH = 5
EXTRACT_BATCH = 10
WEIGH_BATCH = 20
#: An episode of so few memories says itself what it was about.
SHORT_EPISODE = 2
#: Errands of one purpose that one agent has open at most.
OPEN_OF_AGENT = 20
#: An agent whose errand has failed for good rests so long from errands of that purpose: what was wrong may still be.
RESTS = timedelta(hours=1)
#: How long one round lasts: three of them fit into the minute between two.
_LASTS = timedelta(seconds=15)

_UNFINISHED = """
SELECT status, subject FROM heartbeats_externalcall
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND purpose = %(purpose)s
    AND errand_status IN ('pending', 'running', 'failed')
"""
_OPEN = """
SELECT count(*) FILTER (WHERE tenant_id = %(tenant)s),
    count(DISTINCT tenant_id) FILTER (WHERE tenant_id <> %(tenant)s)
FROM heartbeats_externalcall
WHERE errand_status IN ('pending', 'running') AND (due_at IS NULL OR due_at <= now())
"""
# No model is asked on behalf of a suspended tenant.
_MAY_ASK = """
AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
AND NOT EXISTS (
    SELECT FROM heartbeats_externalcall c WHERE c.tenant_id = t.id AND c.agent_id = waits.agent_id
        AND c.purpose = '{purpose}' AND c.errand_status = 'failed'
        AND c.ended_at > now() - interval '{rests} seconds'
)
"""


def tend_episodes() -> Round:
    """Close the episodes that are over, and have those summarized that have been closed for a while."""
    rounds = [close_episodes()]
    waiting = _allowed(agents_with_unsummarized(), CallPurpose.SUMMARIZE)
    rounds.append(make_round("summaries", waiting=waiting, tend=_summarize, lasts=_LASTS))
    return _together(rounds)


def consolidate() -> Round:
    """Bring lost errands back, take the concepts of new memories, and have those weighed that are to be."""
    rounds = [recover_errands()]
    extracting = agents_with(Chore.EXTRACT)
    if settings.ARBOR_MAINTENANCE_MODEL:
        extracting = _allowed(extracting, CallPurpose.EXTRACT)
    rounds.append(make_round("concepts", waiting=extracting, tend=_extract, lasts=_LASTS))
    if settings.ARBOR_MAINTENANCE_MODEL and settings.ARBOR_WEIGH_MEMORIES:
        waiting = _allowed(agents_with(Chore.WEIGH), CallPurpose.WEIGH)
        rounds.append(make_round("weights", waiting=waiting, tend=_weigh, lasts=_LASTS))
    return _together(rounds)


def _together(rounds: Sequence[Round]) -> Round:
    return Round(
        steps=sum(round_.steps for round_ in rounds),
        done=sum(round_.done for round_ in rounds),
        failed=sum(round_.failed for round_ in rounds),
    )


def maintenance_model() -> str:
    """Return the handle of the model that does errands; the reflex policy where none is named."""
    return settings.ARBOR_MAINTENANCE_MODEL or str(REFLEX_HANDLE)


def _allowed(waiting: str, purpose: CallPurpose) -> str:
    rule = _MAY_ASK.format(purpose=purpose.value, rests=RESTS.total_seconds())
    return f"SELECT waits.agent_id FROM ({waiting}) waits WHERE true {rule}"  # noqa: S608 (our own words)


def _summarize(tenant_id: UUID, agent_id: UUID) -> int:
    """Take up to a batch of an agent's closed episodes: ask for a summary, or make one if there is little to sum up."""
    with tenant_transaction(tenant_id):
        unfinished = _unfinished(agent_id, CallPurpose.SUMMARIZE)
        asked = [UUID(subject["episode"]) for status, subject in unfinished if status != CallStatus.FAILED]
        episodes = unsummarized_episodes(agent_id, limit=SUMMARY_BATCH, without=asked)
        short = [episode for episode in episodes if len(episode.excerpts) <= SHORT_EPISODE]
        long = [episode for episode in episodes if len(episode.excerpts) > SHORT_EPISODE][
            : _room(tenant_id, agent_id, len(asked))
        ]
        done = sum(
            ask(agent_id=agent_id, tenant_id=tenant_id, errand=_summary_errand(episode)) for episode in long
        )
    return done + _summarize_by_rule(tenant_id, agent_id, short)


def _summary_errand(episode: Unsummarized) -> Errand:
    return Errand(
        subject=subject_of_episode(episode.episode_id, size=episode.size),
        request=_request(CallPurpose.SUMMARIZE, episode.excerpts),
        model=maintenance_model(),
        left_out=_not_shown(episode),
    )


def _not_shown(episode: Unsummarized) -> list[str]:
    notes = list(left_out_of_prompt(episode.excerpts))
    if (unread := episode.size - len(episode.excerpts)) > 0:
        notes.append(
            f"prompt: {unread:,} of the {episode.size:,} memories are archived, or passed over evenly"
        )
    return notes


def _summarize_by_rule(tenant_id: UUID, agent_id: UUID, episodes: Sequence[Unsummarized]) -> int:
    if not episodes:
        return 0
    summaries = [
        Summary(
            episode_id=episode.episode_id,
            size=episode.size,
            text=extractive_summary(
                [Line(speaker=excerpt.role, text=excerpt.text) for excerpt in episode.excerpts]
            ),
            by=str(REFLEX_HANDLE),
        )
        for episode in episodes
    ]
    embedded = embed_summaries(tenant_id, agent_id, [summary.text for summary in summaries])
    with tenant_transaction(tenant_id):
        return store_summaries(agent_id, summaries, embedded)


def _extract(tenant_id: UUID, agent_id: UUID) -> int:
    if not settings.ARBOR_MAINTENANCE_MODEL:
        return extract_by_rule(tenant_id, agent_id)
    return _ask_about(tenant_id, agent_id, CallPurpose.EXTRACT, Chore.EXTRACT, EXTRACT_BATCH)


def _weigh(tenant_id: UUID, agent_id: UUID) -> int:
    return _ask_about(tenant_id, agent_id, CallPurpose.WEIGH, Chore.WEIGH, WEIGH_BATCH)


def _ask_about(tenant_id: UUID, agent_id: UUID, purpose: CallPurpose, chore: Chore, batch: int) -> int:
    """Write an errand about up to a batch of waiting memories that no errand has asked about; return how many."""
    with tenant_transaction(tenant_id):
        # One worker at a time chooses for an agent, so no memory is asked about twice.
        lock_minds([agent_id])
        unfinished = _unfinished(agent_id, purpose)
        if not _room(tenant_id, agent_id, sum(status != CallStatus.FAILED for status, _ in unfinished)):
            return 0
        # Those of failed errands too: they stay as they are, for a person to see.
        asked = {UUID(memory_id) for _, subject in unfinished for memory_id in subject["memories"]}
        waiting = waiting_memories(agent_id, chore, limit=batch, without=asked)
        if not waiting:
            return 0
        excerpts = [excerpt for _, excerpt in waiting]
        errand = Errand(
            subject=subject_of_memories([memory_id for memory_id, _ in waiting]),
            request=_request(purpose, excerpts),
            model=maintenance_model(),
            left_out=left_out_of_prompt(excerpts),
        )
        return len(waiting) * ask(agent_id=agent_id, tenant_id=tenant_id, errand=errand)


def _request(purpose: CallPurpose, excerpts: Sequence[Excerpt]) -> ModelRequest:
    # Nobody outside can guess the nonce, so no memory can close its data block and speak as the prompt.
    by_rule = maintenance_model().startswith(f"{REFLEX}/")
    return errand_request(purpose, excerpts, nonce=secrets.token_hex(8), for_rules=by_rule)


def _unfinished(agent_id: UUID, purpose: CallPurpose) -> list[tuple[str, dict[str, Any]]]:
    rows = fetch(_UNFINISHED, agent=agent_id, purpose=purpose.value)
    return [(status, json.loads(subject)) for status, subject in rows]


def _room(tenant_id: UUID, agent_id: UUID, open_of_agent: int) -> int:
    """Return how many errands an agent may begin: heartbeats' calls wait in the same queue, and go first.

    None where the day's budget is used up, or the rest is for users who wait: what is to be done stays due until the
    next day. Rules cost nothing.

    Tenants that have some open share ARBOR_MAX_ERRANDS alike: one that comes later has its share at once, while what the
    others have above theirs is worked off. What waits for a later try is in nobody's way, but its own agent's.
    """
    if not maintenance_model().startswith(f"{REFLEX}/") and not day_of(agent_id).level.may_tend:
        return 0
    with connections[OPS].cursor() as cursor:
        cursor.execute(_OPEN, {"tenant": tenant_id})
        row: tuple[int, int] = cursor.fetchone()
    open_of_tenant, others = row
    share: int = max(1, settings.ARBOR_MAX_ERRANDS // (others + 1))
    return max(0, min(OPEN_OF_AGENT - open_of_agent, share - open_of_tenant))
