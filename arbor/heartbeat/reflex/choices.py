"""Choices of the reflex policy: memories as its materials, a reply as a draft, parameters of actions, proposals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import combinations
from typing import Any

from arbor.contacts.values import Speaker
from arbor.heartbeat.focus import CONSOLIDATION_EVERY, turn_of
from arbor.heartbeat.replies.reply import (
    REPLY_KEYS,
    Decomposition,
    Intention,
    ProposalChoice,
    ProposalDecision,
    ProposedAction,
    Reply,
)
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.heartbeat.views import GoalView, IntentView, ProposalView
from arbor.memory.relations import Relation
from arbor.memory.text.lexical import STOP_WORDS, term_of
from arbor.memory.values import MemoryType
from arbor.quotations import quoted, shorten
from arbor.selves.proposals import ProposalKind
from arbor.workflows.delegation import find_delegation
from arbor.workflows.values import COMPLETE_STEP

EXCERPT_LENGTH = 120
#: Beginnings of the policy's own insights and summaries.
STAYS = "What stays with me is this"
SUMMARY = "About"
BACK = "Looking back"
NEEDED = "To be done with"
GATHERED = "These came to mind together"
#: Beginnings of the policy's own steps.
GATHER = "Gather what I already know about"
SUMMED_UP = "Sum up what I know about"
_OWN = (STAYS, f"{SUMMARY} “", BACK, NEEDED, GATHERED, "Heartbeat ", "I wondered")

#: Letters of the longest subject: a longer string is no word, and a question about it would be too long to be known again.
_SUBJECT_LENGTH = 40
_LETTER = r"[^\W\d_]"
_WORD = re.compile(rf"(?<!{_LETTER}){_LETTER}{{5,{_SUBJECT_LENGTH}}}(?!{_LETTER})")
_SIGNIFICANT = re.compile(r"[^\W\d_]{3,}")
#: A capitalized word that does not begin a sentence; after a colon a sentence may begin.
_NAME = re.compile(rf"(?<=[a-zß-ÿ0-9,;] )[A-ZÀ-Þ]{_LETTER}{{2,{_SUBJECT_LENGTH - 1}}}(?!{_LETTER})")
_BETWEEN = re.compile(r"\W+")
_QUOTED_SUBJECT = re.compile(rf"[“‘]([^“”‘’]{{1,{_SUBJECT_LENGTH}}})[”’]")
#: The last quotation that begins in a text; ’ in a word is an apostrophe. Possessive, because trying shorter matches would take
#: minutes for a long text.
_INNERMOST = re.compile(r"(?:“([^“”‘]*+)|‘((?:[^“”‘’]|’(?=\w))*+))[^“‘]*+\Z")
#: A narrative, and its thought; without a thought what was heard, and without either nothing, because results quote queries and names.
_NARRATED = re.compile(
    r"Heartbeat \d+\. [^“]*+(?:(?:(?<=I heard: )|(?<=I thought: ))(?:“[^”]*+”\. I thought: )?(“[^”]*+”?))?"
)
_ROTATED_PAIRS = 5
#: A word from this length on may be a subject of its own.
_LONG = 8
#: The time after which an agent may look for a subject again.
_LATELY = timedelta(days=3)
#: The actions of a plan that think about the goal, and so can follow a procedure; the first of them that is planned does.
_THINKING = ("synthesize", "reflect", "remember")
#: Memories in a summary.
MATERIALS = 3
#: Substitutes for an impossible action, the nearest first.
SUBSTITUTE_ACTIONS = ("reflect", "remember", "recall")
#: The confidence from which a rule, which cannot judge a proposal's content, accepts it.
MIN_CONFIDENCE = 0.8


def excerpt(text: str, longest: int = EXCERPT_LENGTH) -> str:
    """Return a text on one line, clipped."""
    return shorten(" ".join(text.split()), longest)


def gist(view: MemoryView) -> str:
    """Return a memory on one line, or its innermost quotation, because reflections on reflections nest quotations.

    Of a narrative, the quotation is in the thought, or else in what was heard.
    """
    narrated = _NARRATED.match(view.content)
    searched = (narrated.group(1) or "") if narrated else view.content
    quotation = None if view.role else _INNERMOST.search(searched)
    inner = (quotation.group(1) or quotation.group(2) or "").strip() if quotation else ""
    return excerpt(inner or view.content)


def gist_with_speaker(view: MemoryView) -> str:
    return f"{view.role} said {quoted(gist(view))}" if view.role else quoted(gist(view))


def first_hand_memories(situation: Situation) -> list[MemoryView]:
    """Return the distinct memories of others' utterances, else those not episodic, else all; never own answers."""
    views = [view for view in _distinct(situation) if view.role != Speaker.AGENT]
    utterances = [view for view in views if view.role]
    return utterances or [view for view in views if view.type is not MemoryType.EPISODIC] or views


def memories_without_thoughts(situation: Situation) -> list[MemoryView]:
    """Return the first-hand memories that no recent thought and no recalled insight of the agent quotes, best first."""
    thoughts = [_plain(thought.text) for thought in situation.working_memory.thoughts]
    own = {view.id: _plain(view.content) for view in _distinct(situation) if not view.role}
    found: dict[str, MemoryView] = {}
    for view in first_hand_memories(situation):
        text = _plain(gist(view))
        texts = (*thoughts, *(content for other, content in own.items() if other != view.id))
        if text and not view.content.startswith(_OWN) and not any(text in other for other in texts):
            found.setdefault(text, view)
    return list(found.values())


def memories_to_revisit(situation: Situation) -> list[MemoryView]:
    """Return the first-hand memories without the policy's own insights, from another one on at each heartbeat."""
    views = [view for view in first_hand_memories(situation) if not view.content.startswith(_OWN)]
    turn = turn_of(situation) % len(views) if views else 0
    return views[turn:] + views[:turn]


def procedure_for(title: str, situation: Situation) -> MemoryView | None:
    """Return the recalled procedure that shares at least half of the significant words of a goal's title, if any."""
    wanted = _stems(title)
    for view in situation.relevant:
        if (
            view.type is MemoryType.PROCEDURAL
            and wanted
            and 2 * len(wanted & _stems(view.content)) >= len(wanted)
        ):
            return view
    return None


def _stems(text: str) -> set[str]:
    return {term_of(word) for word in _SIGNIFICANT.findall(text.casefold()) if word not in STOP_WORDS}


def most_similar_pair(situation: Situation) -> tuple[MemoryView, MemoryView, list[str]] | None:
    """Return one of the pairs of memories that share the most words, and these words; None without a pair.

    The best pairs rotate between consolidations, because the first pair is connected already.
    """
    best = pairs_of(first_hand_memories(situation))[:_ROTATED_PAIRS]
    return best[situation.heartbeat_number // CONSOLIDATION_EVERY % len(best)] if best else None


def pairs_of(views: Sequence[MemoryView]) -> list[tuple[MemoryView, MemoryView, list[str]]]:
    """Return the pairs of memories with their shared words, those with most words first."""
    words = {view.id: set(_WORD.findall(view.content.lower())) - STOP_WORDS for view in views}
    pairs = [
        (first, second, sorted(words[first.id] & words[second.id], key=lambda word: (-len(word), word)))
        for first, second in combinations(views, 2)
        # Equal gists are the same memory.
        if gist(first).casefold() != gist(second).casefold()
    ]
    return sorted(pairs, key=lambda pair: -len(pair[2]))


def lead_of(texts: Sequence[str], *, avoid: Situation) -> str:
    """Return a subject to look for next: a name in the texts, or else a long word; empty without a new one."""
    known = set(_subjects_of(avoid))
    names = (name for text in texts for name in _NAME.findall(text))
    words = (word for text in texts for word in sorted(_WORD.findall(text), key=len, reverse=True))
    long = (word.lower() for word in words if len(word) >= _LONG and word.lower() not in STOP_WORDS)
    return next((lead for lead in (*names, *long) if _plain(lead) not in known), "")


def _subjects_of(situation: Situation) -> Iterator[str]:
    """Yield what the agent looked for lately, or already wonders about: quotations in its thoughts and questions, and the subjects of its summaries."""
    memory = situation.working_memory
    # By time too, because equal thoughts are stored once: an agent that has nothing else to think of would never be done with the others.
    since = situation.environment.now - _LATELY
    thoughts = (thought.text for thought in memory.thoughts if thought.at > since)
    for text in (*thoughts, *memory.curiosity):
        yield from (_plain(part) for part in _QUOTED_SUBJECT.findall(text))
    for view in _distinct(situation):
        if view.content.startswith(SUMMARY):
            yield _plain(view.content.partition("”")[0].removeprefix(SUMMARY))


def _distinct(situation: Situation) -> list[MemoryView]:
    return list({view.id: view for view in (*situation.relevant, *situation.recent)}.values())


def _plain(text: str) -> str:
    """Return the words alone: quotation marks change as quotations nest."""
    return _BETWEEN.sub(" ", text).strip().casefold()


class Draft:
    """Collects a reply, within the situation's offers and energy."""

    def __init__(self, situation: Situation) -> None:
        self.energy = situation.energy
        self._offers = {offer.name: offer for offer in situation.actions}
        self._thoughts: list[str] = []
        #: Its lists are filled in place.
        self.reply = Reply()

    def offers(self, action: str) -> bool:
        """Return whether the action is offered, at whatever price."""
        return action in self._offers

    def add_action(self, action: str, params: dict[str, Any], reasoning: str, **serves: str) -> bool:
        """Add an action if it is offered and affordable, with the ids that it serves; return whether it was added."""
        offer = self._offers.get(action)
        if offer is None or offer.cost > self.energy:
            return False
        self.energy -= offer.cost
        # A strict schema requires every parameter, null for one without a value.
        params = dict.fromkeys(offer.params) | params
        self.reply.actions.append(ProposedAction(action=action, params=params, reasoning=reasoning, **serves))
        return True

    @property
    def chosen(self) -> set[str]:
        return {action.action for action in self.reply.actions}

    def add_thought(self, sentence: str) -> None:
        self._thoughts.append(sentence)

    def decompose(self, goal_id: str, steps: Mapping[str, str], *, procedure: MemoryView | None) -> None:
        """Break a goal into steps: description by action; the one that thinks follows the procedure, if there is one."""
        intentions = [
            Intention(action=action, description=description, estimated_ticks=1)
            for action, description in steps.items()
        ]
        following = next((action for action in _THINKING if action in steps), "")
        if procedure and following:
            place = [*steps].index(following)
            description = f"{steps[following]} as in {quoted(gist(procedure))}"
            changes = {"description": description, "follows": procedure.id}
            intentions[place] = intentions[place].model_copy(update=changes)
        self.reply.decompositions.append(
            Decomposition(goal_id=goal_id, intentions=intentions, estimated_ticks=len(steps))
        )

    def to_json(self) -> dict[str, Any]:
        """Return the reply as JSON in the schema of replies."""
        whole = dict(self.reply) | {"thinking": " ".join(self._thoughts)}
        return Reply(**whole).model_dump(mode="json", include={*REPLY_KEYS})


def answer_steps(situation: Situation, draft: Draft) -> None:
    """Answer the steps of workflows that are delegated to the agent, with what it knows about their tasks."""
    texts = [
        *(percept.content for percept in situation.percepts),
        *(goal.description for goal in situation.goals),
    ]
    for step_id, task in dict(filter(None, map(find_delegation, texts))).items():
        known = [gist_with_speaker(view) for view in first_hand_memories(situation)[:MATERIALS]]
        output = f"{task}\nWhat I know: {'; '.join(known) if known else 'nothing yet'}."
        if draft.add_action(
            COMPLETE_STEP, {"step": step_id, "output": output}, "Somebody waits for this step."
        ):
            draft.add_thought(f"A step was delegated to me: {quoted(excerpt(task))}")


def execute_intent(intent: IntentView, goal: GoalView, situation: Situation, draft: Draft) -> bool:
    """Execute an intent by its action or a substitute; False if none is possible, or the first possible one is too expensive."""
    possible = possible_action(intent, goal, situation, draft)
    if possible is None:
        return False
    name, params = possible
    # No substitute for an action that is only too expensive now: the intent waits for energy.
    return draft.add_action(name, params, intent.description[:500], goal_id=goal.id, intent_id=intent.id)


def possible_action(
    intent: IntentView, goal: GoalView, situation: Situation, draft: Draft
) -> tuple[str, dict[str, Any]] | None:
    """Return the action that executes an intent, at whatever price, and its parameters: its own or the nearest substitute, if any."""
    for name in dict.fromkeys((intent.action, *SUBSTITUTE_ACTIONS)):
        params = _PARAMS[name](intent, goal, situation) if name in _PARAMS else None
        if params is not None and draft.offers(name):
            return name, params
    return None


def _recall_for(intent: IntentView, goal: GoalView, _: Situation) -> dict[str, Any]:
    # A step of the policy's own plan says nothing about the goal but its title.
    return query_of(goal.title, "" if intent.description.startswith(GATHER) else intent.description)


def _reflect_for(intent: IntentView, goal: GoalView, situation: Situation) -> dict[str, Any]:
    known = [gist_with_speaker(view) for view in first_hand_memories(situation)[:2]]
    basis = f"I know {' and '.join(known)}" if known else "I know little yet"
    needs = excerpt(goal.description) or "a clear end"
    return {
        "insight": f"{excerpt(intent.description, 200)}: {basis}; what {quoted(excerpt(goal.title))} still needs is: {needs}",
        "focus": excerpt(goal.title),
    }


def _remember_for(intent: IntentView, goal: GoalView, situation: Situation) -> dict[str, Any]:
    known = f" I go by {quoted(gist(situation.relevant[0]))}." if situation.relevant else ""
    text = f"{quoted(excerpt(goal.title))} stands at {goal.fraction:.0%} after {quoted(excerpt(intent.description))}.{known}"
    return {"content": text, "type": "semantic", "importance": 0.6}


def _synthesize_for(intent: IntentView, goal: GoalView, situation: Situation) -> dict[str, Any] | None:
    views = first_hand_memories(situation)[:MATERIALS]
    if not views:
        return None
    is_own_step = intent.description.startswith(SUMMED_UP)
    opening = f"{SUMMARY} {quoted(excerpt(goal.title))}" if is_own_step else excerpt(intent.description, 200)
    return {
        "topic": excerpt(goal.title),
        "content": f"{opening}: {'; '.join(map(gist_with_speaker, views))}.",
        "materials": [view.id for view in views],
        "kind": None,
    }


# By action, the parameters for an intent; None where the situation lacks the material.
_PARAMS: Mapping[str, Callable[[IntentView, GoalView, Situation], dict[str, Any] | None]] = {
    "recall": _recall_for,
    "reflect": _reflect_for,
    "remember": _remember_for,
    "connect": lambda _, __, situation: (
        connection(*pair[:2]) if (pair := most_similar_pair(situation)) else None
    ),
    "synthesize": _synthesize_for,
    "rest": lambda *_: {},
}


def query_of(*parts: str) -> dict[str, Any]:
    return {"query": excerpt(" ".join(parts).strip(), 400) or "anything", "limit": None}


def connection(first: MemoryView, second: MemoryView) -> dict[str, Any]:
    relation = Relation.ASSOCIATED if first.type is second.type else Relation.SUPPORTS
    return {"from_id": first.id, "to_id": second.id, "relation": relation.value}


def decide_proposals(proposals: list[ProposalView], draft: Draft) -> None:
    """Accept confident proposals, defer others once, then reject them; reject own summaries as beliefs."""
    for proposal in proposals:
        choice, reason = _choice(proposal)
        draft.reply.proposal_decisions.append(
            ProposalDecision(proposal_id=proposal.id, decision=choice, reason=reason)
        )


def _choice(proposal: ProposalView) -> tuple[ProposalChoice, str]:
    if proposal.kind is ProposalKind.BELIEF and proposal.content.startswith((*_OWN, SUMMED_UP)):
        # Otherwise quotations would become beliefs, a few each day.
        return ProposalChoice.REJECT, "it is a summary of my own, and says nothing that I could believe"
    sure = f"it was proposed with {proposal.confidence:.0%} confidence"
    if proposal.confidence >= MIN_CONFIDENCE:
        return ProposalChoice.ACCEPT, f"{sure}, which is enough for a rule"
    if not proposal.deferrals:
        return ProposalChoice.DEFER, f"{sure}; it may wait for more"
    return ProposalChoice.REJECT, f"{sure}, and has waited already"
