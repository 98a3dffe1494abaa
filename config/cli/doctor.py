"""Run every check of the installation, with a remedy for each fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict

import click
from django.db import DatabaseError, connections

from config.cli.checks.agents import check_agents
from config.cli.checks.audit import check_audit
from config.cli.checks.database import (
    check_clock,
    check_database,
    check_migrations,
    check_role,
    check_vectors,
)
from config.cli.checks.documents import check_documents
from config.cli.checks.finding import CheckVerdict, Finding, fail, ok
from config.cli.checks.models import (
    check_backlog,
    check_embedder,
    check_keys,
    check_master_key,
    check_minds,
    check_model,
    check_token_ratios,
    check_tokenizers,
)
from config.cli.checks.processes import (
    check_api,
    check_broker,
    check_history,
    check_maintenance,
    check_outbox,
    check_scheduler,
    check_web,
    check_workers,
)
from config.cli.checks.skills import check_skills
from config.cli.kit.declarations import ExitCode
from config.cli.kit.output import json_of
from config.cli.kit.printable import printable
from config.database_errors import first_line
from config.interpreter import this_interpreter

_MARKS = {
    CheckVerdict.OK: click.style("✓", fg="green"),
    CheckVerdict.WARN: click.style("!", fg="yellow"),
    CheckVerdict.FAIL: click.style("✗", fg="red"),
}


def doctor(as_json: bool) -> ExitCode:
    """Run every check and print its finding; exit with a failure if one of them failed."""
    findings = []
    for finding in diagnose():
        findings.append(finding)
        if not as_json:
            click.echo(f"{_MARKS[finding.verdict]} {finding.check}: {printable(finding.detail)}")
            if finding.remedy:
                click.echo(f"    {click.style('→', dim=True)} {printable(finding.remedy)}")
    connections.close_all()
    failed = any(finding.verdict is CheckVerdict.FAIL for finding in findings)
    if as_json:
        checks = [asdict(finding) for finding in findings]
        click.echo(json_of({"healthy": not failed, "checks": checks}, indent=2))
    return ExitCode.FAILED if failed else ExitCode.DONE


def diagnose() -> Iterator[Finding]:
    """Run every check in order; checks that need the database are left out when it does not answer."""
    yield check_interpreter()
    yield check_master_key()
    database = check_database()
    yield database
    if database.verdict is CheckVerdict.OK:
        for check in _IN_DATABASE:
            yield _run_check(check)
    yield check_broker()
    yield check_api()
    yield check_model()
    yield check_embedder()
    yield check_web()


def _run_check(check: Callable[[], Finding]) -> Finding:
    """Run a check; an error of the database, such as a missing table, is a finding too."""
    try:
        return check()
    except DatabaseError as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        return fail(name, first_line(error), "run `arbor prepare`")


_IN_DATABASE = (
    check_migrations,
    check_role,
    check_vectors,
    check_clock,
    check_keys,
    check_agents,
    check_skills,
    check_documents,
    check_minds,
    check_backlog,
    check_scheduler,
    check_workers,
    check_maintenance,
    check_history,
    check_audit,
    check_outbox,
    check_token_ratios,
    check_tokenizers,
)


def check_interpreter() -> Finding:
    """Report the build of the interpreter; a slow build is no failure."""
    return ok("python", this_interpreter().summary)
