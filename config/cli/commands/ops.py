"""The commands for operators: failed calls and the pipeline of heartbeats."""

from __future__ import annotations

from pathlib import Path

import click

from arbor.heartbeat.situation import Mode
from config.cli.kit.declarations import argument, group, one_of, option, tenant_command


def _graph() -> click.Argument:
    return argument("which", metavar="[FILE|AGENT]", required=False)


_pipeline = group(
    "pipeline",
    "Check, dry-run and draw the graph of heartbeats.",
    tenant_command(
        "validate",
        "Check a graph, and list all its faults.",
        _graph(),
        run="ops:validate",
        details="Exit code 1 when there is a fault.",
        examples=("arbor ops pipeline validate my.dot",),
    ),
    tenant_command(
        "run",
        "Walk a graph with nodes that do nothing, and show the path.",
        _graph(),
        option(
            "--dry",
            is_flag=True,
            required=True,
            expose_value=False,
            help="Ask, do and write nothing: the only mode there is.",
        ),
        option(
            "--mode",
            type=one_of(Mode),
            default=Mode.REFLECTION.value,
            help="The heartbeat's mode.",
        ),
        option(
            "--reply",
            "reply_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="REPLY.json",
            help="The model's reply; a list has one for each round trip or retry.",
        ),
        option(
            "--outcome",
            "outcomes",
            multiple=True,
            metavar="NODE=OUTCOME",
            help="A node's outcome: success, failure, retry or partial; several, by commas, for its visits.",
        ),
        option(
            "--prefer", multiple=True, metavar="NODE=LABEL", help="The label of the edge that a node prefers."
        ),
        option(
            "--set",
            "assigned",
            multiple=True,
            metavar="NAME=VALUE",
            help="A value of the context, in JSON or text.",
        ),
        run="ops:dry_run_graph",
        details="Exit code 1 when it reaches no exit.",
        examples=(
            "arbor ops pipeline run --dry --mode consolidation",
            "arbor ops pipeline run --dry my.dot --reply reply.json --outcome act=failure",
        ),
    ),
    tenant_command(
        "viz",
        "Draw a graph as SVG: into a file, or to standard output.",
        _graph(),
        option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE.svg",
            help="The file to write.",
        ),
        run="ops:draw",
        examples=("arbor ops pipeline viz -o heartbeat.svg",),
    ),
    details="FILE is a DOT file, or `-` for standard input; AGENT is an agent, which may have a graph of its own. Without either, the"
    " graph of all agents that have none of their own is used.",
)

_ops = group(
    "ops",
    "Inspect failed calls and the heartbeat's pipeline.",
    tenant_command(
        "calls",
        "List and retry failed maintenance calls.",
        option("--agent", metavar="NAME", help="Only this agent's."),
        option("--retry", is_flag=True, help="Retry them in the next job run."),
        run="ops:list_failed_calls",
        details="A call that failed for good leaves a summary, concepts or an appraisal missing. With --retry the next job run asks the"
        " model that is configured then; the failed calls stay on record.",
        examples=("arbor ops calls --retry",),
    ),
    _pipeline,
)

COMMANDS = (_ops,)
