"""Parameters of writes: keyword-only, except the leading one for the row that is acted upon."""

from __future__ import annotations

import ast
from pathlib import Path

APPS = Path(__file__).parents[2] / "apps"
#: The modules of services; the apps `fleet` and `access` have little else.
SERVICES = ("*/services/**/*.py", "*/services.py", "fleet/**/*.py", "access/*.py")
#: The first words of the names of writes.
WRITING_VERBS = """
abandon accept add advance allocate allow answer apply approve archive assign audit begin block bring
calibrate cancel change charge choose claim clean clear close commit complete confirm consolidate
continue copy count create decide defer delegate delete deliver deny digest dispatch drop emit end
endorse enforce enqueue ensure execute expect expire extract fade fail file finalize finish flag grant
halve index ingest inherit learn lease link maintain make mark meet merge move notify open pause perceive
pin place post prepare promote propose publish purge rebuild recalculate receive recluster record recover
reendorse refresh reindex reinforce reject relate relist remember remove rename renew replace report
request resend reset resolve restore resume retire retry revise revoke roll rotate run save seed segment
set settle sign start store subscribe suspend sweep switch synchronize teach trim unpin unpublish
unrelate unset unsubscribe update use watch withdraw write
"""

_STEP = "a step of a job: `run_job` calls it by position"
_PURPOSE = "handles the replies of a purpose of calls, whose functions are called by position"
_READ = "writes nothing, although its name begins like that of a write"
#: Writes with more than one positional parameter.
POSITIONAL = {
    "agents.services.authority.open_authority_key": _READ,
    "agents.services.identity_rows.open_key": _READ,
    "contacts.services.chat_finalize.prepare_answer": _READ,
    "contacts.services.chat_finalize.store_answer": _PURPOSE,
    "contacts.services.chat_finalize.store_silence": _PURPOSE,
    "fleet.authority_history.delete_approvals": _STEP,
    "fleet.goal_history.delete_plans": _STEP,
    "fleet.goal_history.delete_progress": _STEP,
    "fleet.seeds.queries.update_references": _READ,
    "heartbeats.services.legs.signals.end_signal": _READ,
    "memories.services.clusters.job.maintain_agent_clusters": _STEP,
    "memories.services.graph.neighborhoods.refresh_batch": _STEP,
    "workflows.services.rows.run_signal": _READ,
}


def positional_writes(source: str) -> list[str]:
    """Return the public functions of a module that begin with a writing verb and have more than one positional parameter."""
    return [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.partition("_")[0] in WRITING_VERBS.split()
        and len(node.args.posonlyargs + node.args.args) + (node.args.vararg is not None) > 1
    ]


def test_writes_have_keyword_only_parameters_or_a_reason() -> None:
    services = [path for pattern in SERVICES for path in APPS.glob(pattern)]
    found = {
        f"{'.'.join(path.relative_to(APPS).with_suffix('').parts)}.{name}"
        for path in services
        for name in positional_writes(path.read_text(encoding="utf-8"))
    }
    assert sorted(found) == sorted(POSITIONAL)


def test_a_write_with_two_positional_parameters_is_found() -> None:
    assert positional_writes("def store_tool(tool, listing): ...") == ["store_tool"]
    assert positional_writes("async def add(tool, /, listing, *, actor): ...") == ["add"]
    assert positional_writes("def remove_tools(server, *tools): ...") == ["remove_tools"]


def test_reads_and_a_leading_row_are_allowed() -> None:
    assert positional_writes("def store_tool(tool, *, listing): ...") == []
    assert positional_writes("def store_tool(*, tool, listing): ...") == []
    assert positional_writes("def emit(*signals): ...") == []
    assert positional_writes("def tools_of(server, action): ...") == []
    assert positional_writes("def _store(tool, listing): ...") == []
