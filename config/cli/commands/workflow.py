"""The commands about workflows, their runs, and the steps that people approve."""

from __future__ import annotations

import click

from arbor.workflows.values import WorkflowRunStatus
from config.cli.kit.declarations import argument, group, one_of, option, tenant_command

_ID_DETAILS = "An ID is the id of a step, or its last characters."
_FILE = click.File(encoding="utf-8")


def _options(*, new: bool) -> tuple[click.Option, ...]:
    unchanged = "" if new else "  [default: as it is]"
    return (
        option("--description", help=f"Its purpose.{unchanged}"),
        option("--agent", metavar="NAME", help=f"The agent of steps that name none; '' for none.{unchanged}"),
        option(
            "--cron",
            metavar="FIELDS",
            help=f"Its schedule: minute, hour, day, month, weekday; '' for none.{unchanged}",
        ),
        option(
            "--zone",
            metavar="ZONE",
            default=None,
            help=f"The time zone of the schedule.{unchanged or '  [default: UTC]'}",
        ),
        option(
            "--input",
            "values",
            multiple=True,
            metavar="NAME=VALUE",
            help="A value of scheduled runs. Can be repeated.",
        ),
    )


_run = group(
    "run",
    "List, show and cancel runs.",
    tenant_command(
        "list",
        "List runs, the latest first.",
        option("--workflow", metavar="NAME", help="Only this workflow's."),
        option("--status", type=one_of(WorkflowRunStatus), help="Only runs of this status."),
        run="workflows:list_runs",
        examples=("arbor workflow run list", "arbor workflow run list --workflow report --status waiting"),
    ),
    tenant_command(
        "show",
        "Show a run with its steps and their outputs.",
        argument("run_id", metavar="ID"),
        run="workflows:show_run",
        examples=("arbor workflow run show 0c5512aa",),
    ),
    tenant_command(
        "cancel",
        "Cancel an open run with its waiting step.",
        argument("run_id", metavar="ID"),
        option("--reason", default="", help="The reason, for the audit log."),
        run="workflows:cancel_run",
        examples=('arbor workflow run cancel 0c5512aa --reason "wrong topic"',),
    ),
)

_workflow = group(
    "workflow",
    "Define and run workflows: prompts, approvals, delegated steps, waits and notes.",
    tenant_command(
        "list",
        "List the workflows with their schedules.",
        run="workflows:list_workflows",
        examples=("arbor workflow list",),
    ),
    tenant_command(
        "show",
        "Show a workflow with its definition.",
        argument("name"),
        option("--version", "number", type=click.IntRange(1), help="The version.  [default: the latest]"),
        run="workflows:show",
        examples=("arbor workflow show report", "arbor workflow show report --version 1"),
    ),
    tenant_command(
        "create",
        "Create a workflow from a graph in DOT.",
        argument("name"),
        argument("file", type=_FILE),
        *_options(new=True),
        run="workflows:create",
        examples=(
            "arbor workflow create report report.dot --agent Vega",
            "arbor workflow create report report.dot --cron '0 7 * * 1-5' --zone Europe/Berlin --input topic=rain",
        ),
    ),
    tenant_command(
        "change",
        "Change a workflow; another definition is a new version.",
        argument("name"),
        option("--file", "file", type=_FILE, help="The new definition."),
        *_options(new=False),
        option("--enable/--disable", "enabled", default=None, help="Allow new runs to start, or not."),
        run="workflows:change",
        examples=("arbor workflow change report --file report.dot", "arbor workflow change report --disable"),
    ),
    tenant_command(
        "delete",
        "Delete a workflow with its versions and ended runs.",
        argument("name"),
        run="workflows:delete",
        examples=("arbor workflow delete report",),
    ),
    tenant_command(
        "check",
        "Check a definition, and list every fault.",
        argument("file", type=_FILE),
        run="workflows:check",
        examples=("arbor workflow check report.dot",),
    ),
    tenant_command(
        "start",
        "Start a run of the latest version.",
        argument("name"),
        option(
            "--input",
            "values",
            multiple=True,
            metavar="NAME=VALUE",
            help="A value of the input. Can be repeated.",
        ),
        option(
            "--key",
            default="",
            help="A second start by the same person, key and input returns the first run.",
        ),
        run="workflows:start",
        examples=("arbor workflow start report --input topic=rain",),
    ),
    _run,
    tenant_command(
        "waiting",
        "List the steps that wait for a person's approval.",
        run="workflows:list_waiting",
        examples=("arbor workflow waiting",),
    ),
    tenant_command(
        "approve",
        "Approve a waiting step.",
        argument("step_id", metavar="ID"),
        option("--reason", default="", help="The reason, which later steps can read."),
        run="workflows:approve_step",
        details=_ID_DETAILS,
        examples=("arbor workflow approve 0c5512aa",),
    ),
    tenant_command(
        "deny",
        "Deny a waiting step.",
        argument("step_id", metavar="ID"),
        option("--reason", default="", help="The reason, which later steps can read."),
        run="workflows:deny_step",
        details=_ID_DETAILS,
        examples=('arbor workflow deny 0c5512aa --reason "not before Monday"',),
    ),
    details="docs/how-to/run-workflows.md.",
)

COMMANDS = (_workflow,)
