"""A worker that dies where a test wants it to: `python -m tests.acceptance.fleet.faulty worker --queues …`.

It is `arbor worker` with the real application; only, at each point that a heartbeat passes, it asks whether this agent's
heartbeat is to lose its worker here, and if so sends itself SIGKILL. It does so once for each agent.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any
from uuid import UUID

from celery.signals import worker_init

from config.cli.main import main

#: The folder with `plan.json`: {agent's id: {"name", "point"}}. A file named by the id says that it was done.
FOLDER = "FLEET_KILLS"


class Reaper:
    """Knows who dies where."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        plan = json.loads((folder / "plan.json").read_text())
        self._points: dict[str, str] = {agent_id: each["point"] for agent_id, each in plan.items()}
        self._ids: dict[str, str] = {each["name"]: agent_id for agent_id, each in plan.items()}

    def pass_by(self, point: str, agent_id: str | UUID) -> None:
        """Die, if this is the agent's point and it has not been done yet."""
        if self._points.get(str(agent_id)) != point:
            return
        try:
            os.close(os.open(self._folder / str(agent_id), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def agent_of(self, message: Any) -> str:
        """Return whom a message is about."""
        if "agent_id" in message.arguments:
            return str(message.arguments["agent_id"])
        name = message.shown.removeprefix("agent=").partition(" call=")[0]
        return self._ids.get(name, "")


class MortalNode:
    """A node at whose beginning or end the worker may die."""

    def __init__(self, name: str, node: Any, reaper: Reaper) -> None:
        self._name = name
        self._node = node
        self._reaper = reaper
        self.phase = node.phase
        if hasattr(node, "waits"):
            self.waits = node.waits

    def run(self, context: Any) -> Any:
        """Run the node between its two points."""
        self._reaper.pass_by(f"{self._name} begins", context["agent_id"])
        result = self._node.run(context)
        self._reaper.pass_by(f"{self._name} ends", context["agent_id"])
        return result


class MortalWaitingNode(MortalNode):
    """One that waits for a model."""

    def resume(self, context: Any, result: dict[str, Any]) -> Any:
        """Go on; or not."""
        self._reaper.pass_by(f"{self._name} goes on", context["agent_id"])
        return self._node.resume(context, result)


def arm(**_: Any) -> None:
    """Put the points into the application, before it forks."""
    from apps import queues
    from apps.heartbeats.services import call_results, calls, walk

    reaper = Reaper(Path(os.environ[FOLDER]))
    walk.HANDLERS = {
        name: (MortalWaitingNode if hasattr(node, "resume") else MortalNode)(name, node, reaper)
        for name, node in walk.HANDLERS.items()
    }
    for function in ("suspend", "finish"):
        _after(
            walk, function, lambda args, _, at=f"{function} is written": reaper.pass_by(at, args[0].agent_id)
        )
    _after(
        calls,
        "_leased",
        lambda _, leased: [reaper.pass_by("call is taken", call.agent_id) for call in leased],
    )
    store_results, advance_message = calls.store_results, call_results.advance_message

    def store(results: Any, **options: Any) -> Any:
        for result in results:
            reaper.pass_by("reply has come", result.call.agent_id)
        return store_results(results, **options)

    def written(*, agent_id: Any, **options: Any) -> Any:
        # Its transaction is still open.
        reaper.pass_by("reply is written", agent_id)
        return advance_message(agent_id=agent_id, **options)

    calls.store_results, call_results.advance_message = store, written
    publish, role = queues.publish, _role()

    def mortal_publish(message: Any) -> bool:
        agent = reaper.agent_of(message)
        reaper.pass_by(f"{role} is about to tell", agent)
        told = publish(message)
        reaper.pass_by(f"{role} has told", agent)
        return told

    queues.publish = mortal_publish


def _after(module: Any, name: str, act: Callable[[tuple[Any, ...], Any], Any]) -> None:
    function = getattr(module, name)

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        act(args, result)
        return result

    setattr(module, name, wrapped)


def _role() -> str:
    """Return which pool this is."""
    queues = next(each for each in sys.argv if each.startswith("--queues="))
    return {"dispatch": "dispatcher", "heartbeat": "walker"}.get(
        queues.removeprefix("--queues="), "model worker"
    )


if __name__ == "__main__":
    worker_init.connect(arm, weak=False)
    main()
