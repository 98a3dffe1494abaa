"""A worker that dies at points chosen by a test: `python -m tests.acceptance.fleet.faulty_worker worker --queues …`.

It runs `arbor worker` with the real application. At each point that a heartbeat passes, it reads in the plan whether the agent's
worker dies there, and if so sends itself SIGKILL: once for each agent of a plan.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

from celery.signals import worker_init

from arbor.heartbeat.state import HeartbeatState
from arbor.pipeline.engine import NodeResult, Steps
from config.cli.main import main

#: The folder with `plan.json`: {agent's id: {"name", "point", "in_batch"}}. A file named by an agent's id records that its worker
#: was killed. A changed plan is read again.
FOLDER = "FLEET_KILLS"


class WorkerKiller:
    """Kill the worker at the planned points of agents."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plan = folder / "plan.json"
        self._plan_changed_at = 0
        self._points: dict[str, str] = {}
        #: Agents whose worker is killed only while it runs the work of others too.
        self._in_batch: set[str] = set()
        self._ids: dict[str, str] = {}
        #: Agents whose work this worker runs now.
        self.together = 1

    def reach_point(self, point: str, agent_id: str | UUID) -> None:
        """Kill the worker if this is the agent's point and the agent has not lost a worker yet."""
        self._reload_plan()
        if self._points.get(str(agent_id)) != point:
            return
        if self.together == 1 and str(agent_id) in self._in_batch:
            return
        try:
            (self._folder / str(agent_id)).touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def agent_of(self, message: Any) -> str:
        """Return the id of the agent of a message."""
        if "agent_id" in message.arguments:
            return str(message.arguments["agent_id"])
        self._reload_plan()
        name = message.shown.removeprefix("agent=").partition(" call=")[0]
        return self._ids.get(name, "")

    def _reload_plan(self) -> None:
        changed_at = self._plan.stat().st_mtime_ns
        if changed_at != self._plan_changed_at:
            plan = json.loads(self._plan.read_text())
            self._points = {agent_id: entry["point"] for agent_id, entry in plan.items()}
            self._in_batch = {agent_id for agent_id, entry in plan.items() if entry["in_batch"]}
            self._ids = {entry["name"]: agent_id for agent_id, entry in plan.items()}
            self._plan_changed_at = changed_at


class KillableNode:
    """A node; the worker may die at its beginning or end."""

    def __init__(self, name: str, node: Any, killer: WorkerKiller) -> None:
        self._name = name
        self._node = node
        self._killer = killer

    def __call__(self, heartbeat: HeartbeatState) -> Any:
        """Run the node between its two points; a node with needs ends when they are answered."""
        self._killer.reach_point(f"{self._name} begins", heartbeat.agent_id)
        work = self._node(heartbeat)
        if not isinstance(work, NodeResult):
            return self._run_steps(work, heartbeat)
        self._killer.reach_point(f"{self._name} ends", heartbeat.agent_id)
        return work

    def _run_steps(self, work: Steps[HeartbeatState], heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
        result = yield from work
        self._killer.reach_point(f"{self._name} ends", heartbeat.agent_id)
        return result


class KillableWaitingNode(KillableNode):
    """A node that waits for a model."""

    def resume(self, heartbeat: HeartbeatState, result: Any) -> Any:
        """Resume the node, unless the worker dies here."""
        self._killer.reach_point(f"{self._name} goes on", heartbeat.agent_id)
        return self._node.resume(heartbeat, result)


def install_points(**_: Any) -> None:
    """Install the points in the application, before it forks."""
    try:
        killer = WorkerKiller(Path(os.environ[FOLDER]))
        _install_in_heartbeat_workers(killer)
        _install_in_model_workers(killer)
        _install_in_publishing(killer)
    except Exception:  # noqa: BLE001
        # Celery only logs errors of a signal's receiver, and with a worker without points every test would pass.
        traceback.print_exc()
        os._exit(1)


def _install_in_heartbeat_workers(killer: WorkerKiller) -> None:
    import apps.heartbeats.services.legs.runner as runner
    from apps.heartbeats.services.legs import committing
    from arbor.heartbeat.steps import HANDLERS

    handlers = {
        name: (KillableWaitingNode if hasattr(node, "resume") else KillableNode)(name, node, killer)
        for name, node in HANDLERS.items()
    }
    _replace(runner, "HANDLERS", handlers)
    # Heartbeats are slow on a busy machine, and would run one by one to keep legs short.
    _replace(runner, "LEG_MS", 60_000.0)
    _before(runner, "load_batch", lambda args: setattr(killer, "together", len(args[0])))

    # Their transactions are still open.
    def reach_suspend(args: tuple[Any, ...], _: Any) -> None:
        for member in args[0]:
            killer.reach_point("suspend is written", member.agent.id)

    def reach_finish(args: tuple[Any, ...], _: Any) -> None:
        for member in args[0]:
            killer.reach_point("finish is written", member.agent.id)

    def reach_approval_use(args: tuple[Any, ...], _: Any) -> None:
        for heartbeat in args[0]:
            if heartbeat.effects.approvals_used:
                killer.reach_point("use of an approval is written", heartbeat.agent_id)

    _after(committing, "write_approvals", reach_approval_use)
    _after(committing, "suspend", reach_suspend)
    _after(committing, "finish", reach_finish)


def _install_in_model_workers(killer: WorkerKiller) -> None:
    from apps.heartbeats.services.calls import call_results, calls
    from apps.heartbeats.services.schedule import advance_message

    def reach_claim(_: tuple[Any, ...], claimed: Any) -> None:
        for call in claimed:
            killer.reach_point("call is claimed", call.agent_id)

    # Replies are stored together, and their heartbeats go on together, also when other tests keep the machine busy.
    _replace(calls, "GATHERED_FOR_S", 0.5)
    _before(calls, "lease_calls", lambda args: setattr(killer, "together", len(args[0])))
    _after(calls, "lease_calls", reach_claim)

    def reach_replies(args: tuple[Any, ...]) -> None:
        killer.together = len(args[0])
        for result in args[0]:
            killer.reach_point("reply has arrived", result.call.agent_id)

    def killable_advance_message(*, agent_id: Any, **options: Any) -> Any:
        # Its transaction is still open.
        killer.reach_point("reply is written", agent_id)
        return advance_message(agent_id=agent_id, **options)

    _before(calls, "store_results", reach_replies)
    _replace(call_results, "advance_message", killable_advance_message)


def _install_in_publishing(killer: WorkerKiller) -> None:
    from apps import queues

    send, role = queues._send, _role()

    def killable_send(messages: Any) -> bool:
        agents = [killer.agent_of(message) for message in messages]
        killer.together = len(agents)
        for agent in agents:
            killer.reach_point(f"{role} is about to publish", agent)
        result = send(messages)
        for agent in agents:
            killer.reach_point(f"{role} has published", agent)
        return result

    queues._send = killable_send


def _replace(module: ModuleType, name: str, replacement: Any) -> None:
    setattr(module, name, replacement)


def _before(module: ModuleType, name: str, act: Callable[[tuple[Any, ...]], Any]) -> None:
    function = getattr(module, name)

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        act(args)
        return function(*args, **kwargs)

    _replace(module, name, wrapped)


def _after(module: ModuleType, name: str, act: Callable[[tuple[Any, ...], Any], Any]) -> None:
    function = getattr(module, name)

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        act(args, result)
        return result

    _replace(module, name, wrapped)


def _role() -> str:
    """Return the role of this pool, as the names of points have it."""
    queues = next(argument for argument in sys.argv if argument.startswith("--queues="))
    return {"dispatch": "dispatcher", "heartbeat": "heartbeat worker"}.get(
        queues.removeprefix("--queues="), "model worker"
    )


if __name__ == "__main__":
    worker_init.connect(install_points, weak=False)
    main()
