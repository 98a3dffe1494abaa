"""The `arbor` command: a table of commands, each loaded when it is called, and one place where errors end.

Exit codes: 0 done · 1 failed · 2 wrong usage · 3 already running · 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import click

from arbor.errors import AlreadyRunning, ArborError
from config.away import why_away
from config.cli.printable import told


class ExitCode(IntEnum):
    """What the shell is told."""

    #: It is done.
    DONE = 0
    #: It failed; the reason is on standard error.
    FAILED = 1
    #: The command line is wrong (click's own code).
    USAGE = 2
    #: This folder's installation runs already.
    ALREADY_RUNNING = 3
    #: Stopped by Ctrl-C (what shells expect).
    INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where a command lives, and its line in the overview (which must not load it)."""

    target: str
    summary: str
    #: Its module imports Django's models, so Django is set up before it is loaded.
    needs_django: bool = True


def _process(target: str, summary: str) -> Entry:
    return Entry(target=f"config.cli.{target}", summary=summary, needs_django=False)


def _command(target: str, summary: str) -> Entry:
    return Entry(target=f"config.cli.{target}", summary=summary)


#: One line per command, in the order of the overview.
COMMANDS: dict[str, Entry] = {
    "up": _process("up:up", "Run everything from this terminal; Ctrl-C stops it."),
    "down": _process("down:down", "Stop what `arbor up` runs."),
    "status": _command("status:status", "Show how the fleet is doing."),
    "doctor": _command("doctor:doctor", "Check everything, with a remedy for what is wrong."),
    "prepare": _command("prepare:prepare", "Migrate, seed the templates, make the operator and the demo."),
    "worker": _process("worker:worker", "Run one pool of workers."),
    "beat": _process("beat:beat", "Run the schedule: one per installation is enough, two do no harm."),
    "web": _process("web:web", "Run the console."),
    "flower": _process("flower:flower", "Run Flower, the view of the queues."),
    "tenant": _command("tenants:tenant", "Tenants and their members."),
    "user": _command("tenants:user", "Accounts that sign in to the console."),
    "template": _command("templates:template", "Templates that agents are created from."),
    "agent": _command("agents:agent", "Create, start, tick, tell, trace, destroy agents."),
    "heartbeat": _command("replay:heartbeat", "Decide a recorded heartbeat again."),
    "policy": _command("policy:policy", "How an agent may live: budget, hours, rhythm, limits."),
    "perceive": _command("perceive:perceive_command", "Let an agent perceive that something happened."),
    "chat": _command("chat:chat", "Talk to an agent."),
    "goal": _command("goals:goal", "An agent's backlog."),
    "plan": _command("plans:plan", "Steps towards an agent's goals."),
    "pipeline": _command("pipeline:pipeline", "Check, rehearse and draw the graph that heartbeats walk."),
    "ingest": _command("memories:ingest_file", "Read a conversation into an agent's memory."),
    "remember": _command("memories:remember_text", "Give an agent something to remember."),
    "recall": _command("memories:recall_memories", "What an agent remembers, with each score's terms."),
    "channel": _command("channels:channel", "By which ways agents' messages leave."),
    "inbox": _command("inbox:inbox_group", "What agents wrote to you, and answering it."),
    "outbox": _command("outbox:outbox", "Messages on their way, and those that did not arrive."),
    "errands": _command("errands:errands", "Calls of maintenance that failed, and asking anew."),
    "reembed": _command("reembed:reembed", "Move agents to another embedding model, online."),
    "memory": _command("memory.group:memory", "What an agent remembers, and what maintenance made of it."),
    "mind": _command("mind:mind", "What is on an agent's mind now, and rebuilding it."),
    "thoughts": _command(
        "mind:thoughts", "What an agent thought lately, at heartbeats and in conversations."
    ),
    "code": _command("code:code", "The code that an agent keeps."),
    "belief": _command("beliefs:belief", "What an agent believes."),
    "identity": _command("identity:identity", "Who an agent takes itself to be."),
    "proposal": _command("proposals:proposal", "Changes to an agent's self that wait for a decision."),
    "boundary": _command("boundaries:boundary", "What an agent does not do, whoever asks."),
    "drives": _command("inner_state:drives", "What moves an agent from within."),
    "mood": _command("inner_state:mood", "How an agent feels, and has felt."),
    "experiences": _command("inner_state:experiences", "What acting has taught an agent."),
    "peers": _command("inner_state:peers", "Whom an agent deals with, and how far it trusts them."),
    "preference": _command("preferences:preference", "How an agent likes to do things."),
    "demo": _command("demo:demo", "Tell an agent's first hour on a bundled conversation."),
    "manage": _process("manage:manage", "Run a management command of Django."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load and return the command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if entry.needs_django:
            importlib.import_module("config.cli.with_django")
        module, _, attribute = entry.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command), f"{entry.target} is no command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Arbor keeps autonomous agents alive: identity, memory, goals, boundaries and a heartbeat."""


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with one of the codes above."""
    try:
        code = cli.main(args=args, prog_name="arbor", standalone_mode=False)
    except click.ClickException as error:
        _refuse(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    except ArborError as error:
        sys.exit(
            _fail(error, ExitCode.ALREADY_RUNNING if isinstance(error, AlreadyRunning) else ExitCode.FAILED)
        )
    except Exception as error:
        # Only one kind is told in a line, whichever library's class it has; a fault of ours keeps its traceback.
        if not _is_database_away(error):
            raise
        sys.exit(_fail(why_away(error, sys.modules["django.conf"].settings), ExitCode.FAILED))
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)


def _fail(what: Any, code: ExitCode) -> ExitCode:
    click.echo(f"{click.style('arbor:', fg='red', bold=True)} {told(what)}", err=True)
    return code


def _refuse(error: click.ClickException) -> None:
    """Say what is wrong with the command line, in the words of every other error, below the command's usage."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n", err=True)
    _fail(error.format_message(), ExitCode.USAGE)


def _is_database_away(error: Exception) -> bool:
    # Only a command that loaded Django can raise it, so nothing is imported to ask.
    database = sys.modules.get("django.db")
    return database is not None and isinstance(error, database.OperationalError)
