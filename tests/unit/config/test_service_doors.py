"""Doors of the acts of people and programs, which are public services with an actor: a command, an operation, or a reason why not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: The packages of the doors. The client sends requests to the API.
DOORS = {
    "command": "config/cli",
    "operation": "apps/api",
    "page": "apps/console",
    "tool": "apps/mcp_server",
}
#: The parameters that name who acts.
ACTORS = {"actor", "decided_by"}

_AGENT = "agents and jobs do it, or another service on behalf of its caller"
_INSTALLATION = "of the installation, while a token is of one tenant"
_UPKEEP = "a rare act of upkeep at the command line; it has no operation yet"
_MACHINE = "reads or runs something of the machine that the command runs on"
_DIRECT = "the command and the operation wait for the server's list; the page lets a worker ask for it"
#: Acts without any door.
INTERNAL = {
    "agents.services.identity.change_status": _AGENT,
    "agents.services.identity.record_statement": _AGENT,
    "agents.services.identity_creation.endorse_agents": _AGENT,
    "agents.services.percepts.create_percept": _AGENT,
    "authority.services.approvals.expire_approvals_of_actions": _AGENT,
    "authority.services.grants.grant_actions": _AGENT,
    "authority.services.grants.grant_to_all": _AGENT,
    "authority.services.grants.revoke_actions": _AGENT,
    "authority.services.modes.clear_modes_below": _AGENT,
    "calls.services.provider_keys.remove_provider_key": _AGENT,
    "calls.services.provider_keys.store_provider_key": _AGENT,
    "fleet.creation.create_agents": _AGENT,
    "fleet.seeds.refusals.audit_refusals": _AGENT,
    "heartbeats.services.inline.allocate": _AGENT,
    "knowledge.services.active_skills.update_skill_versions": _AGENT,
    "knowledge.services.active_skills.use_latest_versions": _AGENT,
    "knowledge.services.skill_users.update_skill_users": _AGENT,
    "knowledge.services.skills.emit_changed": _AGENT,
    "knowledge.services.subscriptions.create_subscriptions": _AGENT,
    "memories.services.clusters.clusters.mark_for_reclustering": _AGENT,
    "memories.services.clusters.clusters.rename_cluster": _AGENT,
    "memories.services.embedding.reembed.switch_model": _AGENT,
    "memories.services.retention.archive.purge": _AGENT,
    "memories.services.store.revision.change_importance": _AGENT,
    "memories.services.store.revision.confirm": _AGENT,
    "memories.services.store.revision.halve_trust": _AGENT,
    "memories.services.store.revision.revise": _AGENT,
    "selves.services.acceptance.apply_proposal": _AGENT,
    "selves.services.beliefs.confirm_belief": _AGENT,
    "selves.services.birth.create_selves": _AGENT,
    "selves.services.changes.check_reason": _AGENT,
    "selves.services.changes.record_decision": _AGENT,
    "selves.services.changes.record_part_change": _AGENT,
    "selves.services.changes.require_pace": _AGENT,
    "selves.services.proposals.accept": _AGENT,
    "selves.services.proposals.confirm_belief": _AGENT,
    "selves.services.proposals.defer": _AGENT,
    "selves.services.proposals.defer_refused": _AGENT,
    "selves.services.proposals.reject": _AGENT,
    "selves.services.proposals.revise_belief": _AGENT,
    "tools.services.servers.audit_server": _AGENT,
    "workflows.services.answers.complete_delegated_step": _AGENT,
    "workflows.services.legs.report_end": _AGENT,
    "tools.services.servers.refresh_server_in_background": _AGENT,
    "tools.services.tools.set_agents": _AGENT,
}
WITHOUT_COMMAND = {
    "heartbeats.services.schedule.request_heartbeat": "`agent run` waits for the heartbeat, or runs it itself",
    "fleet.accounts.end_other_sessions": "ends the other sessions of the person who is signed in",
    "fleet.seeds.saving.download_saved_seed": "commands open a saved seed by its id, or export the agent to a file",
    "fleet.seeds.saving.save_upload": "commands open the file of a seed where they run; nothing is uploaded",
    "fleet.seeds.saving.verified_saved_seed": "commands open a file or a saved seed, and verify it by `receive_seed`",
    "knowledge.services.documents.add_document": "`document add` adds files by `folders.add_file`",
    "selves.services.decisions.decide_proposals": "decides several; a command and an operation decide one",
    "tools.services.servers.enqueue_refresh": _DIRECT,
}
WITHOUT_OPERATION = {
    "fleet.authority_rotation.retire_authority": _INSTALLATION,
    "fleet.authority_rotation.rotate_authority": _INSTALLATION,
    "fleet.pending_grants.sign_all_pending_grants": _INSTALLATION,
    "fleet.accounts.change_password": _INSTALLATION,
    "fleet.accounts.create_account": _INSTALLATION,
    "fleet.accounts.disable_account": _INSTALLATION,
    "fleet.accounts.enable_account": _INSTALLATION,
    "fleet.accounts.end_sessions": _INSTALLATION,
    "fleet.accounts.end_other_sessions": _INSTALLATION,
    "fleet.administration.open_tenant": _INSTALLATION,
    "fleet.administration.resume_tenant": _INSTALLATION,
    "fleet.administration.set_tenant_energy": _UPKEEP,
    "fleet.administration.suspend_tenant": _INSTALLATION,
    "fleet.creation.ensure_agent": "the operation that creates agents takes an idempotency key",
    "fleet.identities.endorse_all_agents": _INSTALLATION,
    "fleet.key_rotation.record_retirement": _INSTALLATION,
    "fleet.key_rotation.rotate_keys": _INSTALLATION,
    "fleet.pauses.resume_all_tenants": _INSTALLATION,
    "fleet.pauses.suspend_all_tenants": _INSTALLATION,
    "fleet.seeds.files.receive_seed": "operations verify seeds by `save_upload` and `verified_saved_seed`",
    "heartbeats.services.inline.allocate_cycle": _MACHINE,
    "heartbeats.services.working_memory.rebuild_working_memory": _UPKEEP,
    "knowledge.services.global_skills.load_global_skills": _INSTALLATION,
    "maintenance.services.recovery.retry_failed_maintenance_calls": _UPKEEP,
    "memories.services.embedding.reembed.find_moves": _INSTALLATION,
    "memories.services.retention.buffer.promote": _UPKEEP,
    "memories.services.store.create.create_memories": "`teach_agent` is the operation",
    "memories.services.store.ingest.ingest": _MACHINE,
    "selves.services.beliefs.change_filters": _UPKEEP,
    "selves.services.beliefs.drop_belief": "the operation that changes a belief sets its status",
    "selves.services.decisions.decide_proposals": "decides several; a command and an operation decide one",
    "tools.services.servers.enqueue_refresh": _DIRECT,
}


@cache
def acts() -> dict[str, set[str]]:
    """Return the doors that call each act, by the act's name below `apps`."""
    found: dict[str, set[str]] = {name: set() for path in _services() for name in _acts_of(path)}
    for door, package in DOORS.items():
        for path in (ROOT / package).rglob("*.py"):
            for name in _imported(path) & found.keys():
                found[name].add(door)
    return found


def _services() -> Iterator[Path]:
    yield from (ROOT / "apps").glob("*/services/**/*.py")
    yield from (ROOT / "apps" / "fleet").rglob("*.py")
    yield ROOT / "apps" / "access" / "services.py"


def _acts_of(path: Path) -> Iterator[str]:
    module = _module(path)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            names = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
            if names & ACTORS:
                yield f"{module}.{node.name}"


def _imported(path: Path) -> set[str]:
    """Return the names that a module imports from apps; of an imported module, the attributes that it uses."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("apps."):
            for alias in node.names:
                name = f"{node.module}.{alias.name}".removeprefix("apps.")
                names.add(name)
                modules[alias.asname or alias.name] = name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            names.add(f"{modules[node.value.id]}.{node.attr}")
    return names


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "apps").with_suffix("").parts)


def acts_without(door: str) -> list[str]:
    """Return the acts that some door calls, but not this one."""
    return sorted(name for name, doors in acts().items() if doors and door not in doors)


def test_every_act_has_a_door_or_a_reason() -> None:
    assert sorted(name for name, doors in acts().items() if not doors) == sorted(INTERNAL)


def test_every_act_has_a_command_or_a_reason() -> None:
    assert acts_without("command") == sorted(WITHOUT_COMMAND)


def test_every_act_has_an_operation_or_a_reason() -> None:
    assert acts_without("operation") == sorted(WITHOUT_OPERATION)
