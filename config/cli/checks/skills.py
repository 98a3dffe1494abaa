"""Check that the global skills are loaded as their files are."""

from __future__ import annotations

from apps.knowledge.services.global_skills import compare_global_skills
from arbor.quotations import counted
from config.cli.checks.finding import Finding, name_first, ok, warn

#: The most agents that a finding names.
_MAX_NAMED = 5


def check_skills() -> Finding:
    """Check that every file of a skill is valid and loaded, and that agents use the latest versions, whose files exist."""
    found = compare_global_skills()
    faults = [f"{file.path}: {' '.join(file.fault.split())}" for file in found.unreadable]
    if found.outdated:
        faults.append(f"not loaded as they are: {', '.join(found.outdated)}")
    if found.withdrawn_in_use:
        faults.append(f"used by agents, but without a file: {', '.join(found.withdrawn_in_use)}")
    if found.retained:
        agents = name_first(found.retained, most=_MAX_NAMED)
        faults.append(f"too large for the models of agents, which keep an earlier version: {agents}")
    if not faults:
        return ok(
            "skills",
            counted(found.loaded, "global skill is loaded", "global skills are loaded"),
        )
    return warn(
        "skills",
        "; ".join(faults),
        "mend, restore or shorten the files, then `arbor skill load`; the last versions stay in use until then",
    )
