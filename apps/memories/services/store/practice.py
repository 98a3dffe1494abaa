"""Count the outcomes of procedures."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.memories.models import Memory
from apps.tenants.statements import fetch
from arbor.errors import Invalid, NotFound
from arbor.memory.values import MemoryType

_COUNT = """
INSERT INTO memories_practice AS old (tenant_id, memory_id, successes, failures, last_at)
SELECT %(tenant)s, id, %(successes)s, %(failures)s, now() FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = %(memory)s AND type = 'procedural'
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET last_at = EXCLUDED.last_at,
    successes = old.successes + EXCLUDED.successes, failures = old.failures + EXCLUDED.failures
RETURNING successes, failures
"""


@dataclass(frozen=True, kw_only=True)
class Practised:
    """The outcomes of a procedure so far."""

    successes: int
    failures: int

    @property
    def success_rate(self) -> float:
        """The share of successes, 0 to 1."""
        return self.successes / (self.successes + self.failures)


def record_outcome(*, agent_id: UUID, memory_id: UUID, success: bool) -> Practised:
    """Count that a procedure was followed, in the open transaction. One statement.

    Raises NotFound for a memory that is not this agent's, Invalid for one that is no procedure.
    """
    rows = fetch(_COUNT, agent=agent_id, memory=memory_id, successes=int(success), failures=int(not success))
    if rows:
        successes, failures = rows[0]
        return Practised(successes=successes, failures=failures)
    kind = Memory.objects.filter(agent_id=agent_id, id=memory_id).values_list("type", flat=True).first()
    if kind is None:
        raise NotFound(f"there is no memory {memory_id} of this agent")
    raise Invalid(f"only a {MemoryType.PROCEDURAL} memory can be practised; {memory_id} is {kind}")
