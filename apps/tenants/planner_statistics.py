"""Initial statistics of new tables for PostgreSQL's planner, set before the first ANALYZE.

Without statistics, the planner expects two hundred distinct values in a column. It then estimates a tenant's rows to be as few
as an agent's, and an agent's active rows to be none: it chooses any index that begins with the tenant, and reads all rows of the
tenant. A connection uses such a plan of a prepared statement until the table is analyzed, thousands of rows later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import models

#: The first version that can set statistics.
_FIRST_VERSION = 180000
#: Distinct values to expect: few enough for agents to have many rows each, so that their latest are read in order.
_TENANTS, _AGENTS = 1, 5
#: Distinct values to expect in a column with choices: most rows share one or two.
_CHOSEN = 2

# The statistics of a table that was analyzed are not replaced.
_SEED = """
SELECT pg_restore_attribute_stats('schemaname', 'public', 'relname', new.name, 'attname', new.attribute, 'inherited', false,
    'null_frac', 0::real, 'avg_width', new.width, 'n_distinct', new.n_distinct::real)
FROM unnest(%s::text[], %s::text[], %s::int[], %s::int[]) AS new (name, attribute, width, n_distinct)
WHERE NOT EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = new.name)
"""


def seed_statistics(cursor: Any, tenant_models: Iterable[type[models.Model]]) -> None:
    """Set the expected statistics of tables that were never analyzed. One statement; none before PostgreSQL 18."""
    if cursor.connection.info.server_version < _FIRST_VERSION:
        return
    expected = [
        (model._meta.db_table, column, width, n_distinct)
        for model in tenant_models
        for column, width, n_distinct in _expected(model)
    ]
    cursor.execute(_SEED, [list(values) for values in zip(*expected, strict=True)])


def _expected(model: type[models.Model]) -> Iterator[tuple[str, int, int]]:
    """Yield name, width in bytes and number of distinct values of each column of which they are known beforehand."""
    for field in model._meta.concrete_fields:
        if field.column == "tenant_id":
            yield str(field.column), 16, _TENANTS
        elif field.column == "agent_id" and not field.unique:
            yield str(field.column), 16, _AGENTS
        elif field.choices:
            yield str(field.column), 8, _CHOSEN
