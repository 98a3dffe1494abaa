"""The time to export and to import a seed, and the memory that the import takes."""

from __future__ import annotations

import time
from itertools import batched
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.exporting import export_seed
from apps.fleet.seeds.files import verify_seed
from apps.fleet.seeds.importing import ImportOptions, import_seed
from apps.memories.services.store.remember import remember
from arbor.memory.values import MemoryType, NewMemory
from bench import minds
from bench.support.figures import print_progress
from bench.support.installation import Installation
from bench.support.population import ACTOR, BenchAgent, populate

_BATCH = 500


def measure(_installation: Installation, *, memories: int) -> dict[str, Any]:
    """Return the seconds of an export and of an import, and by how many megabytes the import raised the process's peak."""
    (agent,) = populate(agents=1, tenants=1)
    print_progress(f"storing {memories} memories")
    _store(agent, memories)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agent.seed"
        options = CaptureOptions(reason="bench")
        print_progress("exporting")
        started = time.perf_counter()
        with path.open("wb") as file:
            manifest = export_seed(
                tenant_id=agent.tenant_id,
                agent_id=agent.agent_id,
                output=file,
                options=options,
                actor=ACTOR,
            )
        export_s = time.perf_counter() - started
        assert manifest.rows["memories"] >= memories
        # Storing may have had a higher peak than the import, which would hide that of the import.
        before = _reset_peak()
        print_progress("importing")
        started = time.perf_counter()
        with path.open("rb") as file:
            report = import_seed(
                tenant_id=agent.tenant_id,
                seed=verify_seed(file),
                options=ImportOptions(name="Copy"),
                actor=ACTOR,
            )
        import_s = time.perf_counter() - started
        assert report.rows["memories"] == manifest.rows["memories"]
        assert report.with_vectors
    return {
        "memories": memories,
        "seed_mb": round(manifest.bytes / 1e6, 1),
        "export_s": round(export_s, 2),
        "import_s": round(import_s, 2),
        "import_mb": round(_peak_mb() - before, 1),
    }


def _store(agent: BenchAgent, memories: int) -> None:
    turns = (
        NewMemory(
            content=turn.content,
            type=MemoryType.EPISODIC,
            role=turn.role,
            session=turn.session,
            position=turn.position,
            occurred_at=turn.occurred_at,
            source="bench",
        )
        for turn in minds.make_turns(memories)
    )
    for batch in batched(turns, _BATCH, strict=False):
        remember(tenant_id=agent.tenant_id, agent_id=agent.agent_id, memories=batch)


def _reset_peak() -> float:
    """Reset the recorded peak of this process's memory to the present use, and return it in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_mb()


def _peak_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
