"""The `arbor` command: a table of groups, each imported when it is used, and the report of errors.

Exit codes: 0 done · 1 failed · 2 wrong usage · 3 already running · 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from typing import Any

import click

from arbor.errors import AlreadyRunning, ArborError
from arbor.version import VERSION
from config.cli.kit.declarations import ExitCode
from config.cli.kit.printable import error_text
from config.database_errors import explain_database_error, explain_refused_statement
from config.supervisor import MARK

#: The commands by heading, in the order of the overview: name, module under `config.cli.commands` and summary, so that the
#: overview imports none of them.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Run the installation": {
        "up": ("processes", "Run everything from this terminal; Ctrl-C stops it."),
        "down": ("processes", "Stop what `arbor up` runs."),
        "status": ("processes", "Show the state of the fleet."),
        "doctor": ("processes", "Check the installation, with a remedy for each fault."),
        "demo": ("processes", "Show an agent's first hour on a bundled conversation."),
        "prepare": ("processes", "Migrate the database and create what a start needs."),
        "worker": ("processes", "Run one pool of workers."),
        "scheduler": ("processes", "Run the scheduler, which publishes the periodic tasks."),
        "web": ("processes", "Run the console."),
        "api": ("processes", "Run the API."),
        "openapi": ("processes", "Print the OpenAPI document of the API."),
        "flower": ("processes", "Run Flower, the view of the queues."),
        "mcp": ("processes", "Serve agents as memory to programs that speak MCP."),
        "manage": ("processes", "Run a management command of Django."),
    },
    "Work with agents": {
        "agent": ("agent", "Create, start, run, trace and destroy agents."),
        "chat": ("agent", "Talk to an agent."),
        "remember": ("memory", "Add a memory to an agent."),
        "recall": ("memory", "Recall an agent's memories, with each score's components."),
        "search": ("search", "Search an agent's memories, documents, workflows, the audit log."),
        "memory": ("memory", "Inspect and edit an agent's memory."),
        "goal": ("goal", "Manage an agent's goals and plans."),
        "self": ("selves", "Manage an agent's beliefs, identity and other parts of its self."),
        "inbox": ("contact", "Read and answer agents' messages."),
        "contact": ("contact", "Manage delivery channels, the outbox and peers."),
        "approval": ("approval", "Approve or deny what agents ask for."),
        "document": ("document", "Manage documents that all agents of a tenant share."),
        "workflow": ("workflow", "Define and run workflows, and approve their steps."),
        "seed": ("seed", "Export, import, restore, fork, compare and merge agents."),
        "tool": ("tool", "Manage the tools of MCP servers that agents may call."),
        "skill": ("skill", "Manage skills, which say how agents do their work."),
        "signals": ("signals", "List what changed about agents, or follow it live."),
    },
    "Administer": {
        "tenant": ("tenant", "Manage tenants, members and accounts."),
        "provider": ("provider", "Manage a tenant's own keys of model providers."),
        "token": ("token", "Manage the tokens by which programs use the API."),
        "keys": ("keys", "Rotate the master key, and show what each key seals."),
        "audit": ("audit", "Search, export and verify the audit log."),
        "ops": ("ops", "Inspect failed calls and the heartbeat's pipeline."),
    },
}


#: New objects before a garbage collection. Loading Django and walking a batch of heartbeats create thousands, nearly all without
#: cycles: at Python's default of 2,000, collections take a tenth of a command's time, and 0.5 ms of a heartbeat's.
_GC_THRESHOLD = 50_000


class _Overview(click.Group):
    """The group of all commands, which imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return [name for section in COMMANDS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command."""
        for section in COMMANDS.values():
            if cmd_name in section:
                declared = importlib.import_module(f"config.cli.commands.{section[cmd_name][0]}")
                commands: tuple[click.Command, ...] = declared.COMMANDS
                return next(command for command in commands if command.name == cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table."""
        for heading, section in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, summary) for name, (_, summary) in section.items()])


@click.group(cls=_Overview, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="arbor")
def cli() -> None:
    """Arbor keeps autonomous agents alive: identity, memory, goals, boundaries and a heartbeat."""


def run() -> None:
    """Run the command line in a process that does nothing else."""
    # At its exit the interpreter would look for garbage among all loaded modules, a third of a short command's time.
    atexit.register(gc.freeze)
    main()


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with one of the codes above."""
    gc.set_threshold(_GC_THRESHOLD)
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
        # A text that is not UTF-8, or a database that does not answer or is not prepared yet, is reported in one line; a bug
        # keeps its traceback.
        if (explanation := _explain(error)) is None:
            raise
        sys.exit(_fail(explanation, ExitCode.FAILED))
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)


def _fail(message: Any, code: ExitCode) -> ExitCode:
    click.echo(f"{click.style('arbor:', fg='red', bold=True)} {error_text(message)}", err=True)
    return code


def _refuse(error: click.ClickException) -> None:
    """Report a wrong command line like every other error, below the usage of the command."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        click.echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n", err=True)
    _fail(error.format_message(), ExitCode.USAGE)


def _explain(error: Exception) -> str | None:
    """Explain in one line a text that is not UTF-8, or a database that does not answer or is not prepared yet; None for other errors."""
    # Python decodes an argument that is not UTF-8 to half surrogate pairs, which cannot be encoded.
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return f"a text must be UTF-8: {error.reason} at position {error.start}"
    # Only a command that loaded Django can raise these errors, so Django is not imported here.
    database = sys.modules.get("django.db")
    if database is None or not isinstance(error, database.OperationalError | database.ProgrammingError):
        return None
    if _is_preparing():
        # Until then roles, tables or grants may be missing.
        return "`arbor up` still prepares the database; try again in a moment"
    if isinstance(error, database.ProgrammingError):
        return explain_refused_statement(error)
    return explain_database_error(error, sys.modules["django.conf"].settings)


def _is_preparing() -> bool:
    """Return whether another process, an `arbor up`, prepares the database now."""
    # The parts of `arbor up`, the step `prepare` among them, report their own errors.
    if MARK in os.environ:
        return False
    # Imported here, because the help of commands needs neither.
    folder = importlib.import_module("config.supervisor.run_folder").RunFolder
    return bool(folder(importlib.import_module("config.environment").data_dir()).is_preparing())
