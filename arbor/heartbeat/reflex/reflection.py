"""Reflection and consolidation of the reflex policy: from one subject to the next, no thought twice."""

from __future__ import annotations

from arbor.clock import format_time
from arbor.heartbeat.reflex.choices import Draft, connection, query_of
from arbor.heartbeat.reflex.materials import (
    BACK,
    GATHERED,
    STAYS,
    SUMMARY,
    excerpt,
    gist,
    gist_with_speaker,
    lead_of,
    memories_without_thoughts,
    pairs_of,
)
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.quotations import quoted
from arbor.selves.drives import Drive

#: Memories in one summary.
_MATERIALS = 3
#: Stop words, so that a recall about the question is one about its subject.
_MORE = "more about"


def needs_rest(situation: Situation) -> bool:
    """Return whether the need for rest is urgent."""
    return any(drive.name is Drive.REST and drive.urgent for drive in situation.drives)


def question_about(lead: str) -> str:
    """Return a question about a subject."""
    return f"{_MORE} {quoted(lead)}"


def reflect(situation: Situation, draft: Draft) -> None:
    """Reflect on memories that are new to the agent, about its latest question if it has one."""
    memory = situation.working_memory
    question = memory.curiosity[-1] if memory.curiosity else ""
    views = memories_without_thoughts(situation)[:_MATERIALS]
    if question:
        draft.resolved.append(question)
        draft.add_thought(f"I wondered: {_sentence(excerpt(question))}")
    if not views:
        draft.add_thought(_nothing_new(situation, question))
        if not _follow(situation, draft, [cluster.name for cluster in situation.clusters]):
            _look_back(situation, draft)
        return
    draft.add_thought(f"I think of this: {'; '.join(map(gist_with_speaker, views))}")
    _conclude(_subject(question, views), views, draft)
    keywords = [word for cluster in situation.clusters for word in cluster.keywords]
    _follow(situation, draft, [*(view.content for view in views), *keywords])


def consolidate(situation: Situation, draft: Draft) -> None:
    """Connect two memories that are new to the agent and share words, and sum them up."""
    views = memories_without_thoughts(situation)
    pairs = [pair for pair in pairs_of(views) if pair[2]]
    if not pairs:
        if views:
            draft.add_thought(
                f"Before I rest I think of this: {'; '.join(map(gist_with_speaker, views[:_MATERIALS]))}"
            )
            _conclude("", views[:_MATERIALS], draft)
        else:
            draft.add_thought(f"I went through my memory at {_time(situation)}; nothing is left to tie.")
        return
    first, second, shared = pairs[0]
    about = ", ".join(shared[:3])
    draft.add_thought(f"{gist_with_speaker(first)}, and {gist_with_speaker(second)}: both speak of {about}.")
    draft.add_action("connect", connection(first, second), f"Both speak of {about}.")
    insight = f"{BACK}, {about} comes up again: {gist_with_speaker(first)}, and {gist_with_speaker(second)}."
    params = {"insight": insight, "focus": about, "rests_on": [first.id, second.id]}
    draft.add_action("reflect", params, "A pattern is worth keeping.")
    views = [view for pair in pairs[1:] for view in pair[:2]]
    rest = list({view.id: view for view in views if view.id not in (first.id, second.id)}.values())
    if rest:
        _summarize(about, [first, *rest[: _MATERIALS - 1]], draft)


def _conclude(subject: str, views: list[MemoryView], draft: Draft) -> None:
    """Sum up several memories and connect the first two, or reflect on a single one."""
    if len(views) == 1 or not _summarize(subject, views, draft):
        insight = f"{STAYS}: {gist_with_speaker(views[0])}."
        params = {"insight": insight, "focus": None, "rests_on": [views[0].id]}
        draft.add_action("reflect", params, "To see what matters in it.")
    if len(views) > 1:
        draft.add_action("connect", connection(views[0], views[1]), "They came to mind together.")


def _subject(question: str, views: list[MemoryView]) -> str:
    """Return the subject of a question that the first memory speaks of; empty if none."""
    lead = question.removeprefix(_MORE).strip(" “”")
    return lead if lead and lead.casefold() in views[0].content.casefold() else ""


def _summarize(subject: str, views: list[MemoryView], draft: Draft) -> bool:
    """Sum up memories, if that is permitted; return whether it is."""
    opening = f"{SUMMARY} {quoted(subject)}" if subject else GATHERED
    params = {
        "topic": subject or excerpt(gist(views[0]), 60),
        "content": f"{opening}: {'; '.join(map(gist_with_speaker, views))}.",
        "materials": [view.id for view in views],
        "kind": None,
    }
    return draft.add_action("synthesize", params, "What belongs together is worth one note.")


def _follow(situation: Situation, draft: Draft, texts: list[str]) -> bool:
    """Wonder about a subject of the texts next, and look for it; return whether there is one."""
    lead = lead_of(texts, avoid=situation)
    if lead:
        draft.curiosity.append(question_about(lead))
        draft.add_action("recall", query_of(lead), "What else do I know of it?")
    return bool(lead)


def _look_back(situation: Situation, draft: Draft) -> None:
    """Recall a goal or cluster, each in turn: rest would leave curiosity urgent at every heartbeat."""
    subjects = [goal.title for goal in situation.goals] + [cluster.name for cluster in situation.clusters]
    if subjects:
        subject = subjects[situation.beat_number % len(subjects)]
        if draft.add_action("recall", query_of(subject), "I may have overlooked something."):
            draft.add_thought(f"So I go back to {quoted(subject)}.")


def _nothing_new(situation: Situation, question: str) -> str:
    found = (
        "I found nothing about it that I have not thought of" if question else "Nothing new has reached me"
    )
    return f"{found}; it is {_time(situation)}."


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def _time(situation: Situation) -> str:
    return format_time(situation.environment.now)
