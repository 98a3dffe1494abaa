"""Prepare a database for this version's processes; run again, it changes nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click
from django.core.management import call_command
from django.db import connections

from apps.agents.models import Agent
from apps.agents.services.authority import refuse_other_master_key
from apps.agents.services.templates import SeedChange, seed_builtin_templates
from apps.audit.services.positions import continue_audit_positions
from apps.default_model import default_model
from apps.fleet.accounts import create_account
from apps.fleet.identities import endorse_all_agents
from apps.fleet.pending_grants import sign_all_pending_grants
from apps.knowledge.services.global_skills import load_global_skills
from apps.signals.services.positions import continue_positions
from apps.tenants.models import Tenant, User
from apps.tenants.scope import OPS, ops_scope
from arbor.quotations import counted
from config.cli.installation.serving_role import refuse_unsafe_role
from config.demo.installation import TENANTS, make_demo
from config.environment import env, secret, secret_folder
from config.secrets import SecretName
from config.supervisor.run_folder import write_private

#: The actor in the audit log.
ACTOR = "cli:prepare"
#: The most agents without an endorsement that are printed.
_REFUSED_SHOWN = 10


def prepare(demo: bool, report: Path | None) -> None:
    """Migrate the database, seed the built-in templates, endorse agents, sign grants, create the operator's account and the demo."""
    # `migrate` checks the same; here the error is reported like every other one.
    refuse_other_master_key()
    call_command("migrate", verbosity=0, interactive=False)
    refuse_unsafe_role()
    click.echo("the database is migrated")
    if continue_positions():
        click.echo("the positions of signals continue after those of the restored ones")
    if continue_audit_positions():
        click.echo("the positions of audit records continue after those of the restored ones")
    _seed_templates()
    _load_skills()
    _endorse_agents()
    if signed := sign_all_pending_grants(actor=ACTOR):
        click.echo(f"signed {counted(signed, 'grant')} of actions")
    operator, is_new = _create_operator()
    if demo and (agents := make_demo(operator=operator)):
        click.echo(f"made the demo: {len(TENANTS)} tenants with {counted(agents, 'agent')}")
    if report is not None:
        with ops_scope():
            agents, tenants = Agent.objects.count(), Tenant.objects.using(OPS).count()
        write_private(
            report,
            {
                "operator": operator,
                "operator_made": is_new,
                "model": default_model(),
                "agents": agents,
                "tenants": tenants,
            },
        )
    connections.close_all()


def _seed_templates() -> None:
    changes = Counter(seed_builtin_templates().values())
    news = ", ".join(f"{changes[change]} {change}" for change in SeedChange if changes[change])
    click.echo(f"built-in templates: {news}")


def _load_skills() -> None:
    changes = load_global_skills(actor=ACTOR)
    parts = {"new": changes.added, "changed": changes.changed, "withdrawn": changes.withdrawn}
    news = [f"{len(names)} {word}" for word, names in parts.items() if names]
    click.echo(f"global skills: {', '.join([*news, f'{changes.unchanged} unchanged'])}")
    for file in changes.unreadable:
        click.echo(f"not loaded: {file.path}: {file.fault}")


def _endorse_agents() -> None:
    """Create the System Authority, and endorse the agents that have no endorsement."""
    done = endorse_all_agents(actor=ACTOR)
    if done.endorsed:
        click.echo(f"endorsed {counted(done.endorsed, 'agent')}")
    for reason in done.refused[:_REFUSED_SHOWN]:
        click.echo(f"not endorsed: {reason}")
    if more := len(done.refused[_REFUSED_SHOWN:]):
        click.echo(f"not endorsed: {counted(more, 'more agent')}")


def _create_operator() -> tuple[str, bool]:
    """Create the first operator's account; return its name, and whether it is new."""
    name = User.normalize_username(env.str("ARBOR_OPERATOR", default="operator"))
    if User.objects.filter(username=name).exists():
        return name, False
    folder = secret_folder()
    password = secret("ARBOR_OPERATOR_PASSWORD")
    where = "ARBOR_OPERATOR_PASSWORD" if password else folder.file(SecretName.OPERATOR_PASSWORD)
    password = password or folder.ensure(SecretName.OPERATOR_PASSWORD)
    create_account(username=name, password=password, superuser=True, actor=ACTOR)
    click.echo(f"made the account {name}; its password is in {where}")
    return name, True
