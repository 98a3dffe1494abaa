"""Reflection and consolidation of the reflex policy: memories that are new to it, or old ones, and questions about them."""

from __future__ import annotations

from arbor.clock import format_time
from arbor.heartbeat.focus import subject_in_turn
from arbor.heartbeat.reflex.choices import (
    BACK,
    GATHERED,
    MATERIALS,
    STAYS,
    SUMMARY,
    Draft,
    connection,
    excerpt,
    gist,
    gist_with_speaker,
    lead_of,
    memories_to_revisit,
    memories_without_thoughts,
    pairs_of,
    query_of,
)
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.quotations import quoted

#: Stop words, so that a recall about the question is one about its subject.
_MORE = "more about"


def think(situation: Situation, draft: Draft) -> None:
    """Reflect on memories that are new to the agent, about its latest question if it has one."""
    memory = situation.working_memory
    question = memory.curiosity[-1] if memory.curiosity else ""
    views = memories_without_thoughts(situation)[:MATERIALS]
    if question:
        draft.reply.resolved.append(question)
        wondered = excerpt(question)
        end = "" if wondered.endswith((".", "?", "!", "…")) else "."
        draft.add_thought(f"I wondered: {wondered}{end}")
    if not views:
        draft.add_thought(
            "I found nothing about it that I have not thought of."
            if question
            else "Nothing new has reached me."
        )
        _think_again(situation, draft)
        return
    draft.add_thought(f"I think of this: {'; '.join(map(gist_with_speaker, views))}")
    _conclude(_subject(question, views), views, draft)
    keywords = [word for cluster in situation.clusters for word in cluster.keywords]
    _follow(situation, draft, [*(view.content for view in views), *keywords])


def consolidate(situation: Situation, draft: Draft) -> None:
    """Connect the two new memories that share most words and reflect on them; sum up three that share the longest of these words.

    Without two such memories, sum up or reflect on at most three new ones.
    """
    views = memories_without_thoughts(situation)
    pairs = [pair for pair in pairs_of(views) if pair[2]]
    if not pairs:
        if views:
            draft.add_thought(
                f"Before I rest I think of this: {'; '.join(map(gist_with_speaker, views[:MATERIALS]))}"
            )
            _conclude("", views[:MATERIALS], draft)
        else:
            draft.add_thought(
                f"I went through my memory at {format_time(situation.environment.now)}; nothing is left to tie."
            )
        return
    first, second, shared = pairs[0]
    about = ", ".join(shared[:3])
    draft.add_thought(f"{gist_with_speaker(first)}, and {gist_with_speaker(second)}: both speak of {about}.")
    draft.add_action("connect", connection(first, second), f"Both speak of {about}.")
    insight = f"{BACK}, {about} comes up again: {gist_with_speaker(first)}, and {gist_with_speaker(second)}."
    params = {"insight": insight, "focus": about, "rests_on": [first.id, second.id]}
    draft.add_action("reflect", params, "A pattern is worth keeping.")
    sharing = {view.id: view for pair in pairs if shared[0] in pair[2] for view in pair[:2]}
    if len(sharing) > 2:
        _summarize(shared[0], list(sharing.values())[:MATERIALS], draft)


def question_about(lead: str) -> str:
    return f"{_MORE} {quoted(lead)}"


def _think_again(situation: Situation, draft: Draft) -> None:
    """Think of an old memory, another one at each heartbeat, and go on from a subject in it."""
    views = memories_to_revisit(situation)
    if views:
        draft.add_thought(f"I think again of this: {gist_with_speaker(views[0])}")
    texts = [*(view.content for view in views), *(cluster.name for cluster in situation.clusters)]
    if not _follow(situation, draft, texts):
        _look_back(situation, draft)


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
    """Sum up memories, if the offers and the energy permit it; return whether they do."""
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
        draft.reply.curiosity.append(question_about(lead))
        draft.add_action("recall", query_of(lead), "What else do I know of it?")
    return bool(lead)


def _look_back(situation: Situation, draft: Draft) -> None:
    """Recall the subject whose turn it is: rest would leave curiosity urgent at every heartbeat."""
    subject = subject_in_turn(situation)
    if subject and draft.add_action("recall", query_of(subject.name), "I may have overlooked something."):
        draft.add_thought(f"So I go back to {quoted(subject.name)}.")
