"""Show, suspend, reinstate and revoke identities of agents, and rotate their keys."""

from __future__ import annotations

from rich.markup import escape

from apps.agents.services.identity import rotate_agent_key
from apps.agents.services.identity_profile import identity_entry, profile_of
from apps.fleet.identities import reinstate_identity, revoke_identity, suspend_identity
from arbor.agents.profile import IdentityEntry
from config.cli.kit.declarations import Output
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def show(agent: ChosenAgent) -> Output:
    """Show the public half of an agent's identity: keys, keychain and endorsement, verified."""
    entry = identity_entry(agent.id)
    return Output(_identity_value(agent, entry), text=_identity_text(agent, entry))


@in_agent_transaction
def show_profile(agent: ChosenAgent) -> Output:
    """Print an agent's profile as one JSON document."""
    profile = profile_of(agent.id)
    return Output(
        {**profile.model_dump(mode="json"), "tenant": agent.tenant_slug},
        text=escape(profile.model_dump_json(indent=2)),
    )


@in_agent_transaction
def suspend(agent: ChosenAgent, *, reason: str) -> Output:
    """Suspend an agent's identity: the agent has no heartbeats and answers nobody until the identity is reinstated."""
    suspend_identity(agent_id=agent.id, reason=reason, actor=actor())
    return _change_output(agent, "does not act until its identity is reinstated")


@in_agent_transaction
def reinstate(agent: ChosenAgent) -> Output:
    """End the suspension of an agent's identity."""
    reinstate_identity(agent_id=agent.id, actor=actor())
    return _change_output(agent, "may act again")


@in_agent_transaction
def revoke(agent: ChosenAgent, *, reason: str) -> Output:
    """Revoke an agent's identity for good."""
    revoke_identity(agent_id=agent.id, reason=reason, actor=actor())
    return _change_output(agent, "never acts again; its data stays")


@in_agent_transaction
def rotate(agent: ChosenAgent) -> Output:
    """Replace an agent's keys; the public id stays."""
    rotate_agent_key(agent_id=agent.id, actor=actor())
    return _change_output(agent, "has new keys, under the same public id")


def _change_output(agent: ChosenAgent, result: str) -> Output:
    return Output(_identity_value(agent, identity_entry(agent.id)), text=f"{agent.name} {result}.")


def _identity_value(agent: ChosenAgent, entry: IdentityEntry) -> dict[str, object]:
    return {
        "id": agent.id,
        "name": agent.name,
        "tenant": agent.tenant_slug,
        **entry.model_dump(mode="json"),
    }


def _identity_text(agent: ChosenAgent, entry: IdentityEntry) -> str:
    lines = [f"[bold]{escape(agent.name)}[/bold] of {agent.tenant_slug}", f"  {entry.agent_id}"]
    statement = entry.endorsement
    if statement is not None:
        since = f"since {statement.at:%Y-%m-%d %H:%M:%S} UTC, statement {statement.serial}"
        lines.append(
            f"  {statement.status}, {since}, by the System Authority's key {statement.authority_number}"
        )
    if entry.refusal:
        lines.append(f"  does not act: {escape(entry.refusal)}")
    for title, keys in (("signing key", entry.keys), ("exchange key", entry.keychain)):
        lines += [f"  {title} {key.number}: {key.public_key_hex}" for key in keys]
    return "\n".join(lines)
