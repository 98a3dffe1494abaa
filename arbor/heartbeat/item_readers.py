"""Readers of the kinds of items in a reply. Raise Unfit for an item that cannot be used."""

from __future__ import annotations

from typing import Any

from arbor.goals.values import GoalLayer, GoalSource, GoalState, as_title
from arbor.heartbeat.items import ID_LENGTH, Item, Unfit, snake
from arbor.heartbeat.json_text import Found, find_objects
from arbor.heartbeat.reply import (
    MAX_DEPENDENCIES,
    MAX_EVIDENCE,
    MAX_INTENTIONS,
    MAX_INTERESTS,
    MAX_TICKS,
    Decomposition,
    GoalUpdate,
    IdentityInsight,
    InsightKind,
    Intention,
    MemoryNote,
    NewGoal,
    PeerNote,
    PeerOutcome,
    ProposalChoice,
    ProposalDecision,
    ProposedAction,
)
from arbor.selves.values import TEXT_LENGTH as INSIGHT_LENGTH

NAME_LENGTH = 40
REASON_LENGTH = 1_000
NOTE_LENGTH = 4_000
LINE_LENGTH = 500
TITLE_LENGTH = 200

_PARAMS = ("params", "parameters", "arguments", "args")
_ACTION_KEYS = ("action", "type", "reasoning", "goal_id", "intent_id", *_PARAMS)


def read_action(item: Item) -> ProposedAction:
    if isinstance(item.value, str):
        item.mend("an action without parameters was written as a bare name")
        item = item.replaced({"action": item.value})
    item.require_object("an action is an object with the keys action and params")
    name_key = "action" if "action" in item.value else "type"
    name = item.text(name_key, NAME_LENGTH)
    if not name:
        raise Unfit("an action names itself under the key action")
    params = _read_params(item, name_key)
    return ProposedAction(
        action=snake(name),
        params=params,
        reasoning=item.text("reasoning", REASON_LENGTH) or "",
        goal_id=item.identifier("goal_id"),
        intent_id=item.identifier("intent_id"),
    )


def _read_params(item: Item, name_key: str) -> dict[str, Any]:
    """Read the parameters: an object, the text of one, or keys beside the action's name."""
    known = {*_ACTION_KEYS} - ({"type"} if name_key == "action" else set())
    beside = {key: value for key, value in item.value.items() if key not in known}
    given = [key for key in _PARAMS if item.value.get(key) is not None]
    if not given:
        if beside:
            item.mend("parameters beside the action were taken as its params")
        return beside
    for key in (*given[1:], *beside):
        item.drop_key(key, "unknown key; parameters stand under params")
    key, value = given[0], item.value[given[0]]
    if key != "params":
        item.mend(f"{key} was taken as params")
    if isinstance(value, str):
        inner = next(iter(find_objects(value, keys=())), None)
        if isinstance(inner, Found):
            item.mend("params written as a text were read as JSON")
            value = inner.value
    if not isinstance(value, dict):
        item.drop_key(key, "params are an object")
        return {}
    return value


def read_note(item: Item) -> MemoryNote:
    if isinstance(item.value, str):
        item = item.replaced({"text": item.value})
    item.require_object("a note is a text or an object with the key text")
    text = item.text("text", NOTE_LENGTH)
    if not text:
        raise Unfit("a note has a text")
    item.only("text", "referenced_date")
    return MemoryNote(text=text, referenced_date=item.day("referenced_date"))


def read_goal_update(item: Item) -> GoalUpdate:
    item.require_object("a goal update is an object with the key goal_id")
    item = item.renamed({"id": "goal_id", "status": "state"})
    goal_id = item.identifier("goal_id")
    if goal_id is None:
        raise Unfit("a goal update names its goal under goal_id")
    item.only("goal_id", "progress", "note", "state", "reason", "blocked_by")
    update = GoalUpdate(
        goal_id=goal_id,
        progress=item.share("progress"),
        note=item.text("note", NOTE_LENGTH),
        state=item.choice("state", GoalState),
        reason=item.text("reason", REASON_LENGTH),
        blocked_by=item.identifier("blocked_by", LINE_LENGTH),
    )
    if all(part is None for part in (update.progress, update.note, update.state, update.blocked_by)):
        raise Unfit("a goal update has progress, a note, a state or blocked_by")
    return update


def read_new_goal(item: Item) -> NewGoal:
    if isinstance(item.value, str):
        item.mend("a goal was written as a bare title")
        item = item.replaced({"title": item.value})
    item.require_object("a new goal is an object with the key title")
    title = as_title(item.text("title", TITLE_LENGTH) or "")
    if not title:
        raise Unfit("a new goal has a title")
    item.only(*NewGoal.model_fields)
    parent_id = item.identifier("parent_goal_id")
    # A part of another goal is derived from it by default (seed 004, 4.5).
    default_source = GoalSource.DERIVED if parent_id else GoalSource.CURIOSITY
    return NewGoal(
        title=title,
        description=item.text("description", NOTE_LENGTH) or "",
        layer=item.choice("layer", GoalLayer) or GoalLayer.OBJECTIVE,
        source=item.choice("source", GoalSource) or default_source,
        parent_goal_id=parent_id,
        deadline=item.moment("deadline"),
        expected_reward=item.share("expected_reward"),
    )


def read_line(item: Item) -> str:
    return item.line(LINE_LENGTH)


def read_decomposition(item: Item) -> Decomposition:
    item.require_object("a decomposition is an object with the keys goal_id and intentions")
    item = item.renamed({"intents": "intentions", "steps": "intentions", "risk_assessment": "risk"})
    goal_id = item.identifier("goal_id")
    if goal_id is None:
        raise Unfit("a decomposition names its goal under goal_id")
    item.only(*Decomposition.model_fields)
    intentions = item.items("intentions", MAX_INTENTIONS, _read_intention)
    if not intentions:
        raise Unfit("a decomposition has at least one intention")
    return Decomposition(
        goal_id=goal_id,
        intentions=intentions,
        estimated_ticks=item.whole("estimated_ticks", MAX_TICKS),
        estimated_cost=item.amount("estimated_cost"),
        risk=item.share("risk"),
        dependencies=item.lines("dependencies", MAX_DEPENDENCIES, LINE_LENGTH),
    )


def _read_intention(item: Item) -> Intention:
    item.require_object("an intention is an object with the keys action and description")
    item = item.renamed({"type": "action", "reasoning": "description"})
    action = item.text("action", NAME_LENGTH)
    description = item.text("description", LINE_LENGTH)
    if not action or not description:
        raise Unfit("an intention has an action and a description")
    item.only(*Intention.model_fields)
    return Intention(
        action=snake(action),
        description=description,
        precondition=item.text("precondition", LINE_LENGTH),
        postcondition=item.text("postcondition", LINE_LENGTH),
        estimated_ticks=item.whole("estimated_ticks", MAX_TICKS),
    )


def read_proposal_decision(item: Item) -> ProposalDecision:
    item.require_object("a decision is an object with the keys proposal_id and decision")
    item = item.renamed({"id": "proposal_id", "verdict": "decision", "reasoning": "reason"})
    proposal_id = item.identifier("proposal_id")
    decision = item.choice("decision", ProposalChoice, _CHOICES)
    if proposal_id is None or decision is None:
        raise Unfit("a decision has a proposal_id, and accept, reject or defer as its decision")
    item.only(*ProposalDecision.model_fields)
    return ProposalDecision(
        proposal_id=proposal_id, decision=decision, reason=item.text("reason", REASON_LENGTH) or ""
    )


def read_insight(item: Item) -> IdentityInsight:
    item.require_object("an insight is an object with the keys kind and content")
    item = item.renamed({"category": "kind", "type": "kind", "insight": "content", "text": "content"})
    kind = item.choice("kind", InsightKind, _KINDS)
    content = item.text("content", INSIGHT_LENGTH)
    if kind is None or not content:
        raise Unfit(f"an insight has a content, and as its kind one of {', '.join(InsightKind)}")
    item.only(*IdentityInsight.model_fields)
    return IdentityInsight(
        kind=kind,
        content=content,
        confidence=item.share("confidence"),
        evidence=item.lines("evidence", MAX_EVIDENCE, ID_LENGTH),
    )


def read_peer_note(item: Item) -> PeerNote:
    item.require_object("a peer note is an object with the keys peer and outcome")
    item = item.renamed({"peer_id": "peer", "agent": "peer", "name": "peer", "result": "outcome"})
    peer = item.identifier("peer")
    outcome = item.choice("outcome", PeerOutcome, _OUTCOMES)
    if peer is None or outcome is None:
        raise Unfit(f"a peer note names its peer, and as its outcome one of {', '.join(PeerOutcome)}")
    item.only(*PeerNote.model_fields)
    return PeerNote(
        peer=peer,
        outcome=outcome,
        competence=item.share("competence"),
        reliability=item.share("reliability"),
        interests=item.lines("interests", MAX_INTERESTS, NAME_LENGTH),
    )


# Synonyms that models write.
_CHOICES = {
    "accepted": ProposalChoice.ACCEPT,
    "approve": ProposalChoice.ACCEPT,
    "approved": ProposalChoice.ACCEPT,
    "rejected": ProposalChoice.REJECT,
    "decline": ProposalChoice.REJECT,
    "deferred": ProposalChoice.DEFER,
    "later": ProposalChoice.DEFER,
}
_KINDS = {
    "values": InsightKind.VALUE,
    "trait": InsightKind.SELF_CONCEPT,
    "identity": InsightKind.SELF_CONCEPT,
    "capability": InsightKind.AGENCY,
}
_OUTCOMES = {"succeeded": PeerOutcome.SUCCESS, "failed": PeerOutcome.FAILURE, "mixed": PeerOutcome.PARTIAL}
