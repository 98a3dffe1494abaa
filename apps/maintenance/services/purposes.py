"""Read, prepare and apply the replies to maintenance calls, turns of conversations and steps of workflows, by purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agents.services.locks import lock_schedule
from apps.calls.services.maintenance_calls import Subject
from apps.contacts.services.chat_finalize import prepare_answer, store_answer, store_silence
from apps.maintenance.services.facts import ConversationFact, propose_facts, turns_of_people
from apps.memories.services.embedding.embedding import EmbeddedTexts, embed_agent_texts
from apps.memories.services.jobs.maintenance_flags import (
    MAX_TRIES,
    MaintenanceFlag,
    clear_flag,
    count_left_out,
    extract_left_out,
    store_appraisals,
    store_concepts,
)
from apps.memories.services.jobs.summaries import (
    Summary,
    record_failed_summary,
    store_summaries,
)
from apps.workflows.services.answers import answer_prompt, fail_prompt
from arbor.contacts.chat_reply import read_chat_reply
from arbor.memory.maintenance.replies import Answers, read_concepts, read_facts, read_scores, read_summary
from arbor.memory.text.extraction import ExtractedConcept
from arbor.memory.text.facts import STATED_CONFIDENCE
from arbor.models.ports import CallPurpose


@dataclass(frozen=True, kw_only=True)
class Purpose:
    """The functions that handle calls of one purpose, and the rules of their retries."""

    #: Parses the reply, given the subject and the text. Raises ReplyInvalid.
    read: Callable[[Subject, str], Any]
    #: Prepares the parsed reply outside any transaction, given tenant and agent.
    prepare: Callable[[UUID, UUID, Any], Any]
    #: Applies the prepared reply in the transaction that stores the call's reply, given agent, subject, prepared reply and
    #: model handle; returns the reasons for parts that were not used.
    apply: Callable[[UUID, Subject, Any, str], Sequence[str]]
    #: Runs in the transaction that stores a failed try, given agent, subject and reason.
    failed: Callable[[UUID, Subject, str], None]
    #: Runs in the transaction that marks the call as failed, given agent, subject and reason.
    given_up: Callable[[UUID, Subject, str], None] = lambda *_: None
    #: Whether somebody waits for the answer: then unreadable replies are retried at once, the next model replaces an
    #: unreachable one, and nothing is retried later.
    waited_for: bool = False
    #: Whether failed tries are retried; if not, the first failed try is the last.
    retried: bool = True


def _memories(subject: Subject) -> list[UUID]:
    return [UUID(memory_id) for memory_id in subject["memories"]]


def _prepare_summary(tenant_id: UUID, agent_id: UUID, text: str) -> tuple[str, EmbeddedTexts]:
    return text, embed_agent_texts(tenant_id=tenant_id, agent_id=agent_id, texts=[text])


def _apply_summary(
    agent_id: UUID, subject: Subject, prepared: tuple[str, EmbeddedTexts], by: str
) -> Sequence[str]:
    text, embedded = prepared
    summary = Summary(episode_id=UUID(subject["episode"]), size=subject["size"], text=text, by=by)
    if not store_summaries(agent_id, summaries=[summary], embedded=embedded):
        return ["the episode has another summary by now, or has grown"]
    return []


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """The concepts and the facts of a reply, by memory."""

    concepts: Answers[tuple[ExtractedConcept, ...]]
    facts: Answers[tuple[str, ...]]


def _read_extraction(subject: Subject, text: str) -> Extraction:
    count = len(subject["memories"])
    return Extraction(concepts=read_concepts(text, count=count), facts=read_facts(text, count=count))


def _apply_extraction(agent_id: UUID, subject: Subject, read: Extraction, _by: str) -> Sequence[str]:
    ids, concepts = _memories(subject), read.concepts
    if any(read.facts.by_place.values()):
        # Proposals lock the agent, concepts the mind.
        lock_schedule(agent_id)
    extracted = set(
        store_concepts(agent_id, concepts={ids[place]: found for place, found in concepts.by_place.items()})
    )
    given_up, notes = _count_left_out_memories(
        agent_id, MaintenanceFlag.EXTRACT, ids, concepts, rule="its concepts are extracted by rule"
    )
    extract_left_out(agent_id, memory_ids=given_up)
    stated = {
        place: facts for place, facts in read.facts.by_place.items() if facts and ids[place] in extracted
    }
    return [*concepts.dropped, *read.facts.dropped, *notes, *_propose_stated(agent_id, ids, stated)]


def _propose_stated(
    agent_id: UUID, ids: Sequence[UUID], stated: Mapping[int, Sequence[str]]
) -> Sequence[str]:
    """Propose the facts that a model found in people's turns; return why the others were left out."""
    turns = turns_of_people(agent_id, [ids[place] for place in stated])
    facts = [
        ConversationFact(
            text=fact, confidence=STATED_CONFIDENCE, memory_id=ids[place], conversation=turns[ids[place]]
        )
        for place, found in stated.items()
        if ids[place] in turns
        for fact in found
    ]
    notes = [
        f"memory {place + 1}: its facts are dropped, because it is no person's turn in a conversation"
        for place in stated
        if ids[place] not in turns
    ]
    return [*notes, *propose_facts(agent_id=agent_id, facts=facts)]


def _apply_appraisals(agent_id: UUID, subject: Subject, read: Answers[float], _by: str) -> Sequence[str]:
    ids = _memories(subject)
    store_appraisals(agent_id, scores={ids[place]: score for place, score in read.by_place.items()})
    given_up, notes = _count_left_out_memories(
        agent_id, MaintenanceFlag.APPRAISE, ids, read, rule="it keeps the importance by rule"
    )
    clear_flag(flag=MaintenanceFlag.APPRAISE, ids=given_up)
    return [*read.dropped, *notes]


def _count_left_out_memories(
    agent_id: UUID, flag: MaintenanceFlag, ids: Sequence[UUID], read: Answers[Any], *, rule: str
) -> tuple[list[UUID], list[str]]:
    """Count a try for memories that the reply left out; return those that have no tries left, and notes."""
    numbers = {memory_id: place + 1 for place, memory_id in enumerate(ids) if place not in read.by_place}
    tries = count_left_out(agent_id, flag=flag, ids=numbers.keys())
    given_up = [memory_id for memory_id in tries if tries[memory_id] >= MAX_TRIES]
    notes = [
        f"memory {number}: left out of the reply, time {tries[memory_id]} of {MAX_TRIES}"
        + (f": {rule}" if memory_id in given_up else "")
        for memory_id, number in numbers.items()
        if memory_id in tries
    ]
    return given_up, notes


def _answer_step(_agent_id: UUID, subject: Subject, text: str, _by: str) -> Sequence[str]:
    answered = answer_prompt(step_id=UUID(subject["step"]), attempt=subject["attempt"], output=text)
    return [] if answered else ["the step does not wait for this try any more"]


def _fail_step(subject: Subject, reason: str) -> None:
    fail_prompt(step_id=UUID(subject["step"]), attempt=subject["attempt"], reason=reason)


def _as_read(_tenant_id: UUID, _agent_id: UUID, read: Any) -> Any:
    return read


def _no_further_record(_agent_id: UUID, _subject: Subject, _reason: str) -> None:
    """Record nothing besides the call's row."""


PURPOSES: Mapping[CallPurpose, Purpose] = {
    CallPurpose.SUMMARIZE: Purpose(
        read=lambda _, text: read_summary(text),
        prepare=_prepare_summary,
        apply=_apply_summary,
        failed=lambda agent_id, subject, reason: record_failed_summary(
            agent_id=agent_id, episode_id=UUID(subject["episode"]), reason=reason
        ),
    ),
    CallPurpose.EXTRACT: Purpose(
        read=_read_extraction,
        prepare=_as_read,
        apply=_apply_extraction,
        failed=_no_further_record,
    ),
    CallPurpose.APPRAISE_MEMORIES: Purpose(
        read=lambda subject, text: read_scores(text, count=len(subject["memories"])),
        prepare=_as_read,
        apply=_apply_appraisals,
        failed=_no_further_record,
    ),
    CallPurpose.CHAT: Purpose(
        read=lambda subject, text: (subject, read_chat_reply(text)),
        prepare=lambda tenant_id, agent_id, read: prepare_answer(
            tenant_id, agent_id, subject=read[0], chat_reply=read[1]
        ),
        apply=store_answer,
        failed=_no_further_record,
        given_up=store_silence,
        waited_for=True,
    ),
    # The step of the workflow has its own rules of retries.
    CallPurpose.WORKFLOW: Purpose(
        read=lambda _, text: text,
        prepare=_as_read,
        apply=_answer_step,
        failed=_no_further_record,
        given_up=lambda _, subject, reason: _fail_step(subject, reason),
        retried=False,
    ),
}
