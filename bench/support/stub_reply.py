"""Replies of the stub model: a pure function of the prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

_ACTION = re.compile(r"^- (\w+) \((\d+)\): ", re.MULTILINE)
_ENERGY = re.compile(r"^## Energy\n(\d+)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^## This heartbeat: (.+)$", re.MULTILINE)
_GOAL = re.compile(r"^\[(\S+)\] (.*?) \((active|queued)\b.*?(\d+)% done", re.MULTILINE)
_INTENT = re.compile(r"^\[(\S+)\] (\w+): .*?\(for goal (.+?)[;)]", re.MULTILINE | re.DOTALL)
_MEMORY = re.compile(r"^\[(\S+)\] \d{4}-\d{2}-\d{2} \d{2}:\d{2}, ", re.MULTILINE)

#: The beginning of the message of a further round trip (`arbor.heartbeat.replies.round_trips`).
_FOLLOW_UP = "## What your actions brought"
_LISTS = ("actions", "memory_notes", "goal_updates", "new_goals", "concerns", "curiosity")

_WRITE = "reach_out_user"

#: The progress of a goal in one heartbeat, in percent.
_STEP = 15


@dataclass(frozen=True, kw_only=True)
class PromptView:
    """The parts of a prompt that the stub reads."""

    #: A checksum of the prompt, which decides like a throw of dice.
    roll: int
    #: The energy that each action costs, by name.
    costs: dict[str, int]
    energy: int
    directive: str
    #: Id, title, state, percent done.
    goals: list[tuple[str, str, str, int]]
    #: Id, action, goal's id.
    intents: list[tuple[str, str, str]]
    memories: list[str]


def reply_to(prompt: str, *, writes: bool = False) -> dict[str, Any]:
    """Return a valid heartbeat reply, which depends on the prompt only.

    With `writes`, one reply in three begins with a message to the users, if the prompt offers that action.
    """
    if _FOLLOW_UP in prompt:
        return {"thinking": "That is what I wanted to know.", **{key: [] for key in _LISTS}}
    view = _read(prompt)
    goal = next((goal for goal in view.goals if goal[2] == "active"), None)
    messages = [_message(view)] if writes and view.roll % 3 == 0 and _can_pay(view, _WRITE) else []
    energy_left = view.energy - (view.costs[_WRITE] if messages else 0)
    return {
        "thinking": f"It is a {view.directive} heartbeat, and my number is {view.roll % 1000}.",
        "actions": messages + _actions(replace(view, energy=energy_left), goal),
        "memory_notes": [{"text": f"I thought of {view.roll % 1000}.", "referenced_date": None}]
        if view.roll % 4 == 0
        else [],
        "goal_updates": [_update(goal)] if goal and view.directive == "goal pursuit" else [],
        "new_goals": [] if view.goals else [_new_goal(view.roll)],
        "concerns": ["I may be going round in circles."] if view.roll % 5 == 0 else [],
        "curiosity": [f"What is {view.roll % 97} good for?"] if view.roll % 3 == 0 else [],
        "decompositions": [_steps(goal[0], view)] if goal and view.directive == "plan execution" else [],
    }


def _read(prompt: str) -> PromptView:
    sections = {part.partition("\n")[0]: part for part in prompt.split("\n## ")}
    energy = _ENERGY.search(prompt)
    directive = _DIRECTIVE.search(prompt)
    return PromptView(
        roll=crc32(prompt.encode("utf-8", errors="replace")),
        costs={name: int(cost) for name, cost in _ACTION.findall(prompt)},
        energy=int(energy[1]) if energy else 0,
        directive=directive[1] if directive else "free",
        goals=[
            (goal_id, title, state, int(done))
            for goal_id, title, state, done in _GOAL.findall(sections.get("Goals", ""))
        ],
        intents=_INTENT.findall(sections.get("Pending intents", "")),
        memories=list(
            dict.fromkeys(
                _MEMORY.findall(sections.get("Recent experience", ""))
                + _MEMORY.findall(sections.get("Memories that may matter now", ""))
            )
        ),
    )


def _actions(view: PromptView, goal: tuple[str, str, str, int] | None) -> list[dict[str, Any]]:
    """Return the action of the next intent, or up to two actions chosen by the roll, within the energy."""
    wanted: list[tuple[str, str | None, str | None]]
    if view.intents:
        step, named, served = view.intents[0]
        wanted = [(named, served, step)]
    else:
        possible = [name for name in view.costs if _params(name, view, goal) is not None]
        picks = [possible[(view.roll >> shift) % len(possible)] for shift in (3, 11)] if possible else []
        wanted = [(action, goal[0] if goal else None, None) for action in dict.fromkeys(picks)]
    energy_left, actions = view.energy, []
    for action, goal_id, intent_id in wanted:
        params = _params(action, view, goal)
        if params is None or view.costs.get(action, energy_left + 1) > energy_left:
            continue
        energy_left -= view.costs[action]
        actions.append(
            {"action": action, "params": params, "reasoning": "", "goal_id": goal_id, "intent_id": intent_id}
        )
    return actions


def _can_pay(view: PromptView, action: str) -> bool:
    return view.costs.get(action, view.energy + 1) <= view.energy


def _message(view: PromptView) -> dict[str, Any]:
    params = {"intent": "They want to know.", "content": f"I am at number {view.roll % 1000}."}
    return {"action": _WRITE, "params": params, "reasoning": "", "goal_id": None, "intent_id": None}


def _params(action: str, view: PromptView, goal: tuple[str, str, str, int] | None) -> dict[str, Any] | None:
    """Return the action's parameters; None if the prompt has no material for it."""
    about = goal[1] if goal else f"number {view.roll % 1000}"
    queued = next((goal for goal in view.goals if goal[2] == "queued"), None)
    match action:
        case "recall":
            return {"query": about, "limit": 5}
        case "remember":
            return {"content": f"About {about}: {view.roll % 1000}.", "type": "semantic", "importance": 0.5}
        case "reflect":
            return {"insight": f"{about} comes back again and again ({view.roll % 1000}).", "focus": about}
        case "connect" if len(view.memories) > 1:
            first = view.roll % (len(view.memories) - 1)
            ends = {"from_id": view.memories[first], "to_id": view.memories[first + 1]}
            return ends | {"relation": "associated"}
        case "reprioritize" if queued:
            return {"goal_id": queued[0], "state": "active"}
        case "rest":
            return {}
    return None


def _update(goal: tuple[str, str, str, int]) -> dict[str, Any]:
    done = min(100, goal[3] + _STEP)
    return {
        "goal_id": goal[0],
        "progress": done / 100,
        "note": f"{done} % of it is done.",
        "state": "completed" if done == 100 else None,
        "reason": None,
    }


def _new_goal(roll: int) -> dict[str, Any]:
    return {
        "title": f"Find out about {roll % 1000}",
        "description": "I can say what it is good for.",
        "layer": "objective",
        "source": "curiosity",
        "parent_goal_id": None,
    }


def _steps(goal_id: str, view: PromptView) -> dict[str, Any]:
    steps = [name for name in ("recall", "reflect", "remember") if name in view.costs]
    return {
        "goal_id": goal_id,
        "intentions": [{"action": name, "description": f"{name} what serves this goal"} for name in steps],
    }
