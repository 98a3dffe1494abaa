"""Check that the global skills are loaded as their files are."""

from __future__ import annotations

from apps.knowledge.services.global_skills import compare_global_skills
from config.cli.checks.finding import Finding, ok, warn


def check_skills() -> Finding:
    """Check that every file of a skill is valid and loaded, and that agents use no skill whose file is gone."""
    found = compare_global_skills()
    faults = [f"{file.path}: {' '.join(file.fault.split())}" for file in found.unreadable]
    if found.outdated:
        faults.append(f"not loaded as they are: {', '.join(found.outdated)}")
    if found.withdrawn_in_use:
        faults.append(f"used by agents, but without a file: {', '.join(found.withdrawn_in_use)}")
    if not faults:
        return ok("skills", f"{found.loaded} global skills are loaded")
    return warn(
        "skills",
        "; ".join(faults),
        "mend or restore the files, then `arbor skill load`; the last versions stay in use until then",
    )
