"""A model's text read as a reply: leniently, item by item, with a list of all that was not used and why.

What a model gets wrong in one item must not cost the rest, and nothing is lost silently: each item that is dropped or
cut is listed with its path, its beginning and the reason; each thing that was mended is named. Raises ReplyInvalid, and
nothing else, when there is no reply in the text at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from arbor.errors import ReplyInvalid
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.items import Dropped, Item, Sieve, Unfit, snake
from arbor.heartbeat.json_text import Broken, Found, find_objects
from arbor.heartbeat.reply import (
    MAX_ACTIONS,
    MAX_CONCERNS,
    MAX_CURIOSITY,
    MAX_DECOMPOSITIONS,
    MAX_GOAL_UPDATES,
    MAX_INTENTIONS,
    MAX_MEMORY_NOTES,
    MAX_NEW_GOALS,
    REPLY_KEYS,
    REQUIRED_KEYS,
    Decomposition,
    GoalUpdate,
    Intention,
    MemoryNote,
    NewGoal,
    ProposedAction,
    Reply,
)

# Ten times what the default limit of 4,096 output tokens can hold.
MAX_REPLY_CHARACTERS = 160_000

THINKING_LENGTH = 8_000
NAME_LENGTH = 40
REASON_LENGTH = 1_000
NOTE_LENGTH = 4_000
LINE_LENGTH = 500
TITLE_LENGTH = 200

_END_OF_THOUGHT = "</think>"
_PARAMS = ("params", "parameters", "arguments", "args")
_ACTION_KEYS = ("action", "type", "reasoning", "goal_id", "intent_id", *_PARAMS)


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """A reply, what of the text it does not hold, and what was mended to read it."""

    reply: Reply
    dropped: tuple[Dropped, ...] = ()
    repairs: tuple[str, ...] = ()


def parse_reply(text: str) -> ParsedReply:
    """Read a model's text as a reply.

    Raises ReplyInvalid, saying what was expected, if the text is too long, holds no JSON object, an object that breaks
    off, or one with none of the required keys.
    """
    if len(text) > MAX_REPLY_CHARACTERS:
        raise ReplyInvalid(
            f"the reply has {len(text):,} characters; at most {MAX_REPLY_CHARACTERS:,} are read"
        )
    sieve = Sieve()
    body = _find_reply(text, sieve)
    for key in REQUIRED_KEYS:
        if key not in body:
            sieve.mend(f"the key {key!r} is missing; taken as empty")
    for key in [key for key in body if key not in REPLY_KEYS]:
        sieve.drop(key, body[key], f"unknown key; a reply has {', '.join(REPLY_KEYS)}")
    reply = Reply(
        thinking=_read_thinking(body.get("thinking"), sieve),
        actions=sieve.items("actions", body.get("actions"), MAX_ACTIONS, _read_action),
        memory_notes=sieve.items("memory_notes", body.get("memory_notes"), MAX_MEMORY_NOTES, _read_note),
        goal_updates=sieve.items(
            "goal_updates", body.get("goal_updates"), MAX_GOAL_UPDATES, _read_goal_update
        ),
        new_goals=sieve.items("new_goals", body.get("new_goals"), MAX_NEW_GOALS, _read_new_goal),
        concerns=sieve.items("concerns", body.get("concerns"), MAX_CONCERNS, _read_line),
        curiosity=sieve.items("curiosity", body.get("curiosity"), MAX_CURIOSITY, _read_line),
        decompositions=sieve.items(
            "decompositions", body.get("decompositions"), MAX_DECOMPOSITIONS, _read_decomposition
        ),
    )
    return ParsedReply(reply=reply, dropped=sieve.dropped, repairs=tuple(sieve.repairs))


def _find_reply(text: str, sieve: Sieve) -> dict[str, Any]:
    """Return the JSON object that is the reply: the one with most of the known keys, the first of equals."""
    text = text.removeprefix("\ufeff")
    _, thought, rest = text.rpartition(_END_OF_THOUGHT)
    if thought:
        sieve.mend(f"the thoughts before {_END_OF_THOUGHT} were left out")
        text = rest
    objects = list(find_objects(text, keys=REPLY_KEYS))
    whole = [found for found in objects if isinstance(found, Found)]
    candidates = [(found, _unwrap(found.value)) for found in whole]
    usable = [(found, body) for found, body in candidates if any(key in body for key in REQUIRED_KEYS)]
    if not usable:
        raise ReplyInvalid(_explain(objects))
    chosen, body = max(usable, key=lambda candidate: sum(key in candidate[1] for key in REPLY_KEYS))
    if text[: chosen.start].strip() or text[chosen.end :].strip():
        sieve.mend("text around the JSON object was left out")
    if body is not chosen.value:
        sieve.mend("the reply was wrapped in another object")
    for repair in chosen.repairs:
        sieve.mend(repair)
    for key, value in chosen.repeated:
        sieve.drop(key, value, "the key appears twice in one object; the last one counts")
    for found, other in usable:
        if found is not chosen:
            sieve.drop("", other, "a further reply in the same text; one reply is read")
    for item in objects:
        if isinstance(item, Broken):
            sieve.drop("", text[item.start :], "a further reply in the same text that breaks off")
    return body


def _unwrap(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a sole key holds, such as {"reply": {...}}, if that looks more like a reply."""
    if len(value) == 1:
        (key, inner), *_ = value.items()
        if key not in REPLY_KEYS and isinstance(inner, dict):
            return inner
    return value


def _explain(objects: list[Found | Broken]) -> str:
    """Say why there is no reply, in words that help whoever has to write it again."""
    wanted = f"answer with one JSON object with the keys {', '.join(REPLY_KEYS)}"
    for item in objects:
        if isinstance(item, Broken):
            if item.cut_off:
                return "the JSON object breaks off before its end; answer with a shorter, complete one"
            return f"the JSON object is not valid: {item.fault}; {wanted}"
    if objects:
        return f"the JSON object has none of the keys {', '.join(REQUIRED_KEYS)}; {wanted}"
    return f"there is no JSON object in the reply; {wanted}"


def _read_thinking(value: Any, sieve: Sieve) -> str:
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        sieve.mend("a list of thoughts was joined")
        value = "\n".join(value)
    return sieve.text("thinking", value, THINKING_LENGTH) or ""


def _read_action(item: Item) -> ProposedAction:
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


def _read_note(item: Item) -> MemoryNote:
    if isinstance(item.value, str):
        item = item.replaced({"text": item.value})
    item.require_object("a note is a text or an object with the key text")
    text = item.text("text", NOTE_LENGTH)
    if not text:
        raise Unfit("a note has a text")
    item.only("text", "referenced_date")
    return MemoryNote(text=text, referenced_date=item.day("referenced_date"))


def _read_goal_update(item: Item) -> GoalUpdate:
    item.require_object("a goal update is an object with the key goal_id")
    item = item.renamed({"id": "goal_id", "status": "state"})
    goal_id = item.identifier("goal_id")
    if goal_id is None:
        raise Unfit("a goal update names its goal under goal_id")
    item.only("goal_id", "progress", "note", "state", "reason")
    update = GoalUpdate(
        goal_id=goal_id,
        progress=item.share("progress"),
        note=item.text("note", NOTE_LENGTH),
        state=item.choice("state", GoalState),
        reason=item.text("reason", REASON_LENGTH),
    )
    if update.progress is None and update.note is None and update.state is None:
        raise Unfit("a goal update has progress, a note or a state")
    return update


def _read_new_goal(item: Item) -> NewGoal:
    if isinstance(item.value, str):
        item.mend("a goal was written as a bare title")
        item = item.replaced({"title": item.value})
    item.require_object("a new goal is an object with the key title")
    title = item.text("title", TITLE_LENGTH)
    if not title:
        raise Unfit("a new goal has a title")
    item.only("title", "description", "layer", "source", "parent_goal_id")
    return NewGoal(
        title=" ".join(title.split()),
        description=item.text("description", NOTE_LENGTH) or "",
        layer=item.choice("layer", GoalLayer) or GoalLayer.OBJECTIVE,
        source=item.choice("source", GoalSource) or GoalSource.CURIOSITY,
        parent_goal_id=item.identifier("parent_goal_id"),
    )


def _read_line(item: Item) -> str:
    if isinstance(item.value, dict):
        item.only("text")
    else:
        item = item.replaced({"text": item.value})
    line = item.text("text", LINE_LENGTH)
    if not line:
        raise Unfit("an entry is a text")
    return line


def _read_decomposition(item: Item) -> Decomposition:
    item.require_object("a decomposition is an object with the keys goal_id and intentions")
    item = item.renamed({"intents": "intentions", "steps": "intentions"})
    goal_id = item.identifier("goal_id")
    if goal_id is None:
        raise Unfit("a decomposition names its goal under goal_id")
    item.only("goal_id", "intentions")
    intentions = item.items("intentions", MAX_INTENTIONS, _read_intention)
    if not intentions:
        raise Unfit("a decomposition has at least one intention")
    return Decomposition(goal_id=goal_id, intentions=intentions)


def _read_intention(item: Item) -> Intention:
    item.require_object("an intention is an object with the keys action and description")
    item = item.renamed({"type": "action", "reasoning": "description"})
    action = item.text("action", NAME_LENGTH)
    description = item.text("description", LINE_LENGTH)
    if not action or not description:
        raise Unfit("an intention has an action and a description")
    item.only("action", "description")
    return Intention(action=snake(action), description=description)
