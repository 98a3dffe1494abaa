"""Parse a model's text into a reply, leniently.

An error in one item does not affect the others: each dropped or cut item is listed with its path, its beginning and the
reason, and each repair is recorded. Raises ReplyInvalid, and nothing else, for a text without a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arbor.errors import ReplyInvalid
from arbor.goals.values import GoalSource, GoalState
from arbor.heartbeat.replies.items import Dropped, Item, ReplyReader, Unfit, snake
from arbor.heartbeat.replies.reply import (
    LINE_LENGTH,
    MAX_INTENTIONS,
    MOST,
    REASON_LENGTH,
    REPLY_KEYS,
    REQUIRED_KEYS,
    Decomposition,
    GoalUpdate,
    IdentityInsight,
    InsightKind,
    Intention,
    MemoryNote,
    PeerNote,
    PeerOutcome,
    ProposalDecision,
    ProposedAction,
    ProposedGoal,
    Reply,
    ReplyPart,
    forms_of,
)
from arbor.models.json_text import JsonObject, UnreadableObject, find_objects
from arbor.tools.names import ACTION_LENGTH, is_tool_action

# Ten times the text of 4,096 output tokens, the default limit.
MAX_REPLY_CHARACTERS = 160_000

THINKING_LENGTH = 8_000

_END_OF_THOUGHT = "</think>"


_PARAMS = ("params", "parameters", "arguments", "args")
_ACTION_KEYS = ("action", "type", "reasoning", "goal_id", "intent_id", *_PARAMS)


def read_action(item: Item) -> ProposedAction:
    """Read an action, also one written as a bare name; raises Unfit without a name."""
    if isinstance(item.value, str):
        item.add_repair("an action without parameters was written as a bare name")
        item = item.replaced({"action": item.value})
    item.require_object("an action is an object with the keys action and params")
    name_key = "action" if "action" in item.value else "type"
    name = item.text(name_key, ACTION_LENGTH)
    if not name:
        raise Unfit("an action names itself under the key action")
    params = _read_params(item, name_key)
    return ProposedAction(
        action=_action_name(name),
        params=params,
        reasoning=item.text("reasoning", REASON_LENGTH) or "",
        goal_id=item.identifier("goal_id"),
        intent_id=item.identifier("intent_id"),
    )


def _action_name(written: str) -> str:
    """Return the name of an action as Arbor writes it; the name of a tool's action has its server's spelling."""
    return written if is_tool_action(written) else snake(written)


def _read_params(item: Item, name_key: str) -> dict[str, Any]:
    """Read the parameters: an object, the text of one, or keys beside the action's name."""
    known = {*_ACTION_KEYS} - ({"type"} if name_key == "action" else set())
    siblings = {key: value for key, value in item.value.items() if key not in known}
    present = [key for key in _PARAMS if item.value.get(key) is not None]
    if not present:
        if siblings:
            item.add_repair("parameters beside the action were taken as its params")
        return siblings
    for key in (*present[1:], *siblings):
        item.drop_key(key, "unknown key; parameters belong under params")
    key, value = present[0], item.value[present[0]]
    if key != "params":
        item.add_repair(f"{key} was taken as params")
    if isinstance(value, str):
        inner = next(iter(find_objects(value, keys=())), None)
        if isinstance(inner, JsonObject):
            item.add_repair("params written as a text were read as JSON")
            value = inner.value
    if not isinstance(value, dict):
        item.drop_key(key, "params are an object")
        return {}
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class PartReader[P: ReplyPart]:
    """Reads one kind of item by the forms of its fields. Raises Unfit for an item that cannot be used."""

    part: type[P]
    #: The reason for dropping an item that is no object.
    shape: str
    #: By field, the reason for dropping an item that lacks this field, or one of the fields read before it.
    lacking: Mapping[str, str]
    #: Right names of keys by synonyms that models write.
    renamed: Mapping[str, str] = field(default_factory=dict)
    #: For an item that is a bare text: the key that gets the text, and the repair to record.
    bare: tuple[str, str] = ("", "")
    #: Fields that are read before the others, and readers of fields without a form.
    first: Sequence[str] = ()
    nested: Mapping[str, Callable[[Item, str], Any]] = field(default_factory=dict)
    #: Changes the values that were read from the item, or raises Unfit.
    complete: Callable[[Item, dict[str, Any]], None] = lambda *_: None

    def __call__(self, item: Item) -> P:
        """Read the part; raises Unfit for an item that is dropped."""
        key, repair = self.bare
        if key and isinstance(item.value, str):
            if repair:
                item.add_repair(repair)
            item = item.replaced({key: item.value})
        item.require_object(self.shape)
        item = item.renamed(self.renamed)
        forms = forms_of(self.part)
        known = False
        values: dict[str, Any] = {}
        for name in dict.fromkeys((*self.first, *self.part.model_fields)):
            values[name] = (self.nested.get(name) or forms[name].read)(item, name)
            if name in self.lacking:
                if not all(values.values()):
                    raise Unfit(self.lacking[name])
                if not known:
                    item.drop_other_keys(*self.part.model_fields)
                known = True
        self.complete(item, values)
        return self.part(**{name: value for name, value in values.items() if value is not None})


def _complete_update(item: Item, update: dict[str, Any]) -> None:
    """Require a change of the goal, and drop the keys that have no effect beside the others."""
    if not update["met"] and all(
        update[name] is None for name in ("progress", "note", "state", "blocked_by")
    ):
        raise Unfit("a goal update has progress, a note, a state, blocked_by or met")
    completes, state = update["progress"] == 1, update["state"]
    if completes:
        others = ("state",) if state not in (None, GoalState.COMPLETED) else ()
        for name in (*others, "blocked_by", "met"):
            if update[name]:
                item.drop_key(
                    name, "progress 1 completes the goal, which then waits for nothing and stays completed"
                )
                update[name] = None
    elif state in (GoalState.COMPLETED, GoalState.ABANDONED):
        for name in ("blocked_by", "met"):
            if update[name]:
                item.drop_key(name, f"a goal that is {state} waits for nothing")
                update[name] = None
        if state is GoalState.COMPLETED and update["progress"] is not None:
            item.drop_key("progress", "a goal that is completed has full progress")
            update["progress"] = None
    elif state is None and update["reason"]:
        item.drop_key("reason", "a reason belongs to a new state, or to progress 1; write a note")
        update["reason"] = None


def _derive_from_parent(_: Item, goal: dict[str, Any]) -> None:
    """Set the source of a part of another goal (seed 004, 4.5)."""
    if goal["parent_goal_id"] and goal["source"] is None:
        goal["source"] = GoalSource.DERIVED


_read_intention = PartReader(
    part=Intention,
    shape="an intention is an object with the keys action and description",
    lacking={"description": "an intention has an action and a description"},
    renamed={"type": "action", "reasoning": "description"},
    complete=lambda _, values: values.update(action=_action_name(values["action"])),
)
_READERS: Mapping[str, Callable[[Item], Any]] = {
    "actions": read_action,
    "memory_notes": PartReader(
        part=MemoryNote,
        shape="a note is a text or an object with the key text",
        lacking={"text": "a note has a text"},
        bare=("text", ""),
    ),
    "goal_updates": PartReader(
        part=GoalUpdate,
        shape="a goal update is an object with the key goal_id",
        lacking={"goal_id": "a goal update names its goal under goal_id"},
        renamed={"id": "goal_id", "status": "state"},
        complete=_complete_update,
    ),
    "new_goals": PartReader(
        part=ProposedGoal,
        shape="a new goal is an object with the key title",
        lacking={"title": "a new goal has a title"},
        bare=("title", "a goal was written as a bare title"),
        first=("title", "parent_goal_id"),
        complete=_derive_from_parent,
    ),
    "concerns": lambda item: item.line(LINE_LENGTH),
    "curiosity": lambda item: item.line(LINE_LENGTH),
    "decompositions": PartReader(
        part=Decomposition,
        shape="a decomposition is an object with the keys goal_id and intentions",
        lacking={
            "goal_id": "a decomposition names its goal under goal_id",
            "intentions": "a decomposition has at least one intention",
        },
        renamed={"intents": "intentions", "steps": "intentions", "risk_assessment": "risk"},
        nested={"intentions": lambda item, key: item.items(key, MAX_INTENTIONS, _read_intention)},
    ),
    "proposal_decisions": PartReader(
        part=ProposalDecision,
        shape="a decision is an object with the keys proposal_id and decision",
        lacking={"decision": "a decision has a proposal_id, and accept, reject or defer as its decision"},
        renamed={"id": "proposal_id", "verdict": "decision", "reasoning": "reason"},
    ),
    "identity_insights": PartReader(
        part=IdentityInsight,
        shape="an insight is an object with the keys kind and content",
        lacking={"content": f"an insight has a content, and as its kind one of {', '.join(InsightKind)}"},
        renamed={"category": "kind", "type": "kind", "insight": "content", "text": "content"},
    ),
    "peer_notes": PartReader(
        part=PeerNote,
        shape="a peer note is an object with the keys peer and outcome",
        lacking={
            "outcome": f"a peer note names its peer, and as its outcome one of {', '.join(PeerOutcome)}"
        },
        renamed={"peer_id": "peer", "agent": "peer", "name": "peer", "result": "outcome"},
    ),
    "resolved": lambda item: item.line(LINE_LENGTH),
}


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """A reply, the dropped items and the repairs."""

    reply: Reply
    dropped: tuple[Dropped, ...] = ()
    repairs: tuple[str, ...] = ()


def parse_reply(text: str) -> ParsedReply:
    """Parse a model's text as a reply.

    Raises ReplyInvalid for a text that is too long, without a JSON object, or with a truncated one or one without any
    required key.
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ReplyInvalid(
            f"the reply has {len(text):,} characters; at most {MAX_REPLY_CHARACTERS:,} are read"
        )
    reader = ReplyReader()
    body = _find_reply(text, reader)
    for key in REQUIRED_KEYS:
        if key not in body:
            reader.add_repair(f"the key {key!r} is missing; taken as empty")
    for key in [key for key in body if key not in REPLY_KEYS]:
        reader.drop(key, body[key], f"unknown key; a reply has {', '.join(REPLY_KEYS)}")
    thinking = _read_thinking(body.get("thinking"), reader)
    lists = {
        key: reader.items(key, body.get(key), MOST[key], read)
        for key, read in _READERS.items()
        if body.get(key) is not None
    }
    reply = Reply(thinking=thinking, **lists, item_paths=reader.item_paths)
    return ParsedReply(reply=reply, dropped=reader.dropped, repairs=tuple(reader.repairs))


def _find_reply(text: str, reader: ReplyReader) -> dict[str, Any]:
    """Return the JSON object with the most known keys, the first of equals."""
    text = text.removeprefix("\ufeff")
    _, thought, rest = text.rpartition(_END_OF_THOUGHT)
    if thought:
        reader.add_repair(f"the thoughts before {_END_OF_THOUGHT} were left out")
        text = rest
    objects = list(find_objects(text, keys=REPLY_KEYS))
    complete_objects = [json_object for json_object in objects if isinstance(json_object, JsonObject)]
    candidates = [(json_object, _unwrap(json_object.value)) for json_object in complete_objects]
    usable = [
        (json_object, body) for json_object, body in candidates if any(key in body for key in REQUIRED_KEYS)
    ]
    if not usable:
        raise ReplyInvalid(_explain(objects))
    chosen, body = max(usable, key=lambda candidate: sum(key in candidate[1] for key in REPLY_KEYS))
    if text[: chosen.start].strip() or text[chosen.end :].strip():
        reader.add_repair("text around the JSON object was left out")
    if body is not chosen.value:
        reader.add_repair("the reply was wrapped in another object")
    for repair in chosen.repairs:
        reader.add_repair(repair)
    for key, value in chosen.repeated:
        reader.drop(key, value, "the key appears twice in one object; the last one counts")
    for json_object, other in usable:
        if json_object is not chosen:
            reader.drop("", other, "a further reply in the same text; one reply is read")
    for item in objects:
        if isinstance(item, UnreadableObject):
            fault = "breaks off" if item.cut_off else f"is not valid: {item.fault}"
            reader.drop("", text[item.start :], f"a further reply in the same text that {fault}")
    return body


def _unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object under an unknown sole key, such as {"reply": {...}}."""
    if len(value) == 1:
        (key, inner), *_ = value.items()
        if key not in REPLY_KEYS and isinstance(inner, dict):
            return inner
    return value


def _explain(objects: list[JsonObject | UnreadableObject]) -> str:
    """Return why there is no reply, and the expected format."""
    wanted = f"answer with one JSON object with the keys {', '.join(REPLY_KEYS)}"
    for item in objects:
        if isinstance(item, UnreadableObject):
            if item.cut_off:
                return "the JSON object breaks off before its end; answer with a shorter, complete one"
            return f"the JSON object is not valid: {item.fault}; {wanted}"
    if objects:
        return f"the JSON object has none of the keys {', '.join(REQUIRED_KEYS)}; {wanted}"
    return f"there is no JSON object in the reply; {wanted}"


def _read_thinking(value: Any, reader: ReplyReader) -> str:
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        reader.add_repair("a list of thoughts was joined")
        value = "\n".join(value)
    return reader.text("thinking", value, THINKING_LENGTH) or ""
