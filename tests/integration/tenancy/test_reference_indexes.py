"""Indexes of references, on their own side: deleting the rows that they refer to reads no whole table."""

from __future__ import annotations

from tests.integration.tenancy.conftest import fetch_raw

#: All references, and whether an index on their columns contains each row that refers to another.
REFERENCES = """
SELECT k.conrelid::regclass::text, a.attname::text, EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indisvalid
        AND i.indkey[0] = ANY(k.conkey) AND (cardinality(k.conkey) = 1 OR i.indkey[1] = ANY(k.conkey))
        AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) = format('(%s IS NOT NULL)', a.attname))
)
FROM pg_constraint k
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[cardinality(k.conkey)]
WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace
"""
#: References without an index, by the reason. Agents and channels are deleted one at a time, by people.
UNINDEXED = {
    "written often, and deleted with the agent": {
        ("memories_upkeep", "agent_id"),
    },
    "few rows": {("contacts_channel", "agent_id"), ("access_apitoken", "agent_id")},
    "history, whose channel is rarely deleted": {("contacts_outboxmessage", "channel_id")},
}


def test_a_reference_has_an_index_or_a_reason(database: None) -> None:
    rows = fetch_raw(REFERENCES)
    assert len(rows) > 80
    unindexed = {(table, column) for table, column, indexed in rows if not indexed}
    assert unindexed == set().union(*UNINDEXED.values())
