"""Row-level security as the database has it, so that tables whose protection has not changed are not locked again.

The server rewrites the expressions of policies. So each policy has a comment: a digest of the statement that created it, and of
the definition that the server made of this statement. A change of either shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

#: A policy, by its table and its name.
type PolicyKey = tuple[str, str]

_SECURED = "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity AND relnamespace = 'public'::regnamespace"
_INDEXES = "SELECT relname FROM pg_class WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace"
_POLICIES = """
SELECT c.relname, p.polname, json_build_array(
    p.polpermissive, p.polcmd, ARRAY(SELECT rolname FROM pg_roles WHERE oid = ANY (p.polroles) ORDER BY 1),
    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
)::text, coalesce(obj_description(p.oid, 'pg_policy'), '')
FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid AND c.relnamespace = 'public'::regnamespace
"""


@dataclass(frozen=True, kw_only=True)
class PresentPolicy:
    """A policy of the database: its definition as the server writes it, and its comment."""

    definition: str
    comment: str


@dataclass(frozen=True, kw_only=True)
class PolicyCatalog:
    """The protection of the tables, as it is before statements change it."""

    #: The tables with forced row-level security.
    secured: frozenset[str]
    #: The names of all indexes.
    indexes: frozenset[str]
    policies: Mapping[PolicyKey, PresentPolicy]

    def has_policy(self, key: PolicyKey, statement: str) -> bool:
        """Return whether the policy is the one that this statement creates, and has not been changed since."""
        present = self.policies.get(key)
        return present is not None and present.comment == _digest(statement, present.definition)


def read_policy_catalog(cursor: Any) -> PolicyCatalog:
    """Read the protection of all tables. Three statements."""
    cursor.execute(_SECURED)
    secured = frozenset(name for (name,) in cursor.fetchall())
    cursor.execute(_INDEXES)
    indexes = frozenset(name for (name,) in cursor.fetchall())
    return PolicyCatalog(secured=secured, indexes=indexes, policies=_read_policies(cursor))


def comment_policies(cursor: Any, statements: Mapping[PolicyKey, str]) -> None:
    """Comment policies that were just created by these statements with their digests. Two statements; none without policies."""
    if not statements:
        return
    policies = _read_policies(cursor)
    comments = [
        sql.SQL("COMMENT ON POLICY {} ON {} IS {}").format(
            sql.Identifier(name),
            sql.Identifier(table),
            sql.Literal(_digest(statement, policies[table, name].definition)),
        )
        for (table, name), statement in statements.items()
    ]
    cursor.execute(sql.SQL(";\n").join(comments))


def _read_policies(cursor: Any) -> dict[PolicyKey, PresentPolicy]:
    cursor.execute(_POLICIES)
    return {
        (table, name): PresentPolicy(definition=definition, comment=comment)
        for table, name, definition, comment in cursor.fetchall()
    }


def _digest(statement: str, definition: str) -> str:
    return hashlib.sha256(f"{statement}\n{definition}".encode()).hexdigest()
