"""Write the rows of a verified seed into an agent, in batches and in the open transaction."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from apps.fleet.seeds import queries
from apps.fleet.seeds.checks import Values
from apps.fleet.seeds.sections import BY_NAME, SECTIONS, SeedGroup, SeedSection
from apps.memories.models import Mind, NextEmbedding, Term
from apps.memories.services.embedding.literals import fit_terms, sparsevec_text
from apps.memories.services.store.term_counts import count_terms
from apps.tenants.encoding import to_json
from apps.tenants.packing import in_json, pack
from apps.tenants.postgresql.arrays import Reals
from apps.tenants.statements import change
from arbor.clock import to_utc
from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid, SeedInvalid
from arbor.ids import read_id
from arbor.memory.buffer import stored_weights
from arbor.memory.content import content_hash
from arbor.memory.detail_text import indexed_terms
from arbor.memory.text.lexical import document_vector
from arbor.memory.values import MemoryStatus
from arbor.seeds.id_mapping import IdMapping
from arbor.seeds.reading import SeedRow

type Vector = npt.NDArray[np.float16]

#: Rows that are written by one statement.
_BATCH = 500
#: The bytes before the numbers of a vector in PostgreSQL's binary format.
_HEAD_BYTES = 4
#: The column whose words are indexed, by section.
_TEXTS = {"buffer": "content", "episodes": "summary"}
#: The column whose normalized text is hashed, by the column of the hash.
_HASHED = {"content_hash": "content", "statement_hash": "statement"}


@dataclass(kw_only=True)
class RowWriter:
    """Writes the rows of some groups of a seed into one agent; the caller has locked agent and mind."""

    agent_id: UUID
    #: The embedding model of the agent's mind, and whether the vectors of the seed are of this model.
    model: EmbeddingModel
    carries_vectors: bool
    groups: frozenset[SeedGroup]
    #: None: rows keep their ids.
    mapping: IdMapping | None = None
    #: The ids that rows may refer to, by table.
    known: Mapping[str, Set[bytes]]
    #: Sections of the groups that are not written.
    skipped: frozenset[str] = frozenset()
    written: dict[str, int] = field(default_factory=dict)
    #: The number of rows that require unknown rows, by section; they are not written.
    dropped: dict[str, int] = field(default_factory=dict)
    #: Columns of the seed that this Arbor does not have, by section.
    unknown: dict[str, set[str]] = field(default_factory=dict)
    _batch: list[Values] = field(default_factory=list)
    _numbers: list[Vector] = field(default_factory=list)
    #: References between rows of one table, by section and column; set once all rows are written.
    _self_references: dict[tuple[str, str], list[dict[str, str]]] = field(default_factory=dict)
    #: The terms of each active memory.
    _terms: list[Mapping[int, float]] = field(default_factory=list)

    def delete_others(self, ids: Mapping[str, set[bytes]]) -> None:
        """Delete the agent's rows that the seed does not have, and make room in unique indexes for its rows."""
        for section in reversed(SECTIONS):
            if section.group not in self.groups or section.appended:
                continue
            if section.key == ("id",):
                retained = [UUID(bytes=row_id) for row_id in ids.get(section.name, ())]
                change(queries.delete_others(section.name), agent=self.agent_id, ids=retained)
            else:
                change(queries.delete_all(section.name), agent=self.agent_id)
            if section.frees:
                change(queries.free_places(section.name), agent=self.agent_id)

    def write(self, rows: Iterable[SeedRow]) -> dict[str, list[Values]]:
        """Write the rows of all tables, and return the rows of the other sections."""
        others: dict[str, list[Values]] = {}
        section: SeedSection | None = None
        for row in rows:
            found = BY_NAME.get(row.section)
            if found is None:
                others.setdefault(row.section, []).append(self._mapped(row.values))
                continue
            if found.group not in self.groups or found.name in self.skipped:
                continue
            if section is not found:
                self._flush(section)
                section = found
            if not self._resolve(found, row.values):
                self.dropped[found.name] = self.dropped.get(found.name, 0) + 1
                continue
            self._batch.append(self._row(found, row))
            if len(self._batch) >= _BATCH:
                self._flush(section)
        self._flush(section)
        for (name, column), references in self._self_references.items():
            change(queries.update_references(name, column), rows=to_json(references))
        if SeedGroup.MEMORIES in self.groups:
            Term.objects.filter(agent_id=self.agent_id).delete()
            NextEmbedding.objects.filter(agent_id=self.agent_id).delete()
            count_terms(self.agent_id, terms=self._terms, sign=1)
        return others

    def _mapped(self, values: Values) -> Values:
        return values if self.mapping is None else self.mapping.apply(values)

    def _resolve(self, section: SeedSection, values: Values) -> bool:
        """Empty references to unknown rows; return whether the row can be written without them."""
        for column, (target, nullable) in section.references.items():
            reference = values.get(column)
            known = self.known.get(target)
            if reference is None or known is None or _id_bytes(reference) in known:
                continue
            if not nullable:
                return False
            values[column] = None
        return True

    def _row(self, section: SeedSection, row: SeedRow) -> Values:
        values, unknown = checked_values(section, self._mapped(row.values))
        if unknown:
            self.unknown.setdefault(section.name, set()).update(unknown)
        self._hash_changed_texts(values, row.values)
        own = section.model._meta.label
        for column, (target, _) in section.references.items():
            if target == own and values[column] is not None:
                references = self._self_references.setdefault((section.name, column), [])
                references.append({"id": values["id"], "target": values[column]})
                values[column] = None
        for column in section.packed:
            values[column] = in_json(pack(values[column]))
        self._add_vectors(section, values, row.vectors)
        return values

    def _hash_changed_texts(self, values: Values, captured: Values) -> None:
        """Hash the texts in which the mapping has replaced ids, so that equal texts are found by their hash."""
        for column, text in _HASHED.items():
            if self.mapping is not None and column in values and values[text] != captured.get(text):
                values[column] = f"\\x{content_hash(values[text]).hex()}"

    def _add_vectors(self, section: SeedSection, values: Values, vectors: Mapping[str, str]) -> None:
        for vector_field in section.vectors:
            text = vectors.get(vector_field.column) if self.carries_vectors else None
            if text is not None:
                self._numbers.append(self._vector(text))
            # Vectors are sent as numbers beside the rows: as texts, they would take longer than all other columns.
            values[vector_field.column] = None if text is None else len(self._numbers)
        if section.name == "clusters":
            # A cluster whose center is not carried is computed again.
            values["stale"] = values["stale"] or not self.carries_vectors
        if not section.vectors or section.name == "clusters":
            return
        has_vector = values["embedding"] is not None
        values["embedding_model"] = vectors.get("embedding_model", "") if has_vector else ""
        if section.name == "memories":
            terms = self._terms_of_memory(values)
        elif text := values[_TEXTS[section.name]]:
            terms = document_vector(text, speaker=values.get("role", ""))
            if section.name == "buffer":
                terms = stored_weights(terms)
        else:
            values["lexical"] = None
            return
        values["lexical"] = sparsevec_text(terms)

    def _terms_of_memory(self, values: Values) -> Mapping[int, float]:
        terms = fit_terms(
            indexed_terms(values["content"], speaker=values["role"], detail=values["detail"]),
            session=values["session"],
            dimension=self.model.dimension,
        )
        if values["status"] == MemoryStatus.ACTIVE:
            self._terms.append(terms)
        return terms

    def _vector(self, text: str) -> Vector:
        try:
            numbers = np.frombuffer(base64.b64decode(text, validate=True)[_HEAD_BYTES:], dtype=">f2")
        except (ValueError, TypeError) as error:
            raise SeedInvalid("a vector of the seed cannot be read") from error
        if len(numbers) != self.model.dimension or not np.isfinite(numbers).all():
            raise SeedInvalid(
                f"a vector of the seed must have {self.model.dimension} finite numbers, got {len(numbers)} numbers"
            )
        return numbers

    def _flush(self, section: SeedSection | None) -> None:
        if section is None or not self._batch:
            return
        statement = queries.insert_rows_of(section.name, tuple(self._batch[0]))
        numbers = {
            "numbers": Reals(np.concatenate(self._numbers)) if self._numbers else None,
            "dimension": self.model.dimension,
        }
        sent = numbers if section.vectors else {}
        change(statement, agent=self.agent_id, rows=to_json(self._batch), **sent)
        self.written[section.name] = self.written.get(section.name, 0) + len(self._batch)
        self._batch, self._numbers = [], []


def checked_values(section: SeedSection, values: Values) -> tuple[Values, Set[str]]:
    """Return the values of all columns of a section, and the names of others. Raises SeedInvalid for a wrong value."""
    carried: Values = {}
    for check in section.checks:
        column = check.column
        value = carried[column] = values[column] if column in values else check.default()
        if (
            not isinstance(value, check.types)
            or (check.allowed is not None and value not in check.allowed)
            or (check.is_time and isinstance(value, str) and not _is_time(value))
            or (column in section.texts and not _are_texts(value))
        ):
            raise SeedInvalid(
                f"{section.name} of the seed have {column} {str(value)[:60]!r}, which this Arbor does not know"
            )
    if section.check is not None:
        section.check(carried)
    return carried, values.keys() - carried.keys()


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_time(text: str) -> bool:
    """Return whether a time is in the years 1 to 9999 in UTC. PostgreSQL stores others, but Python reads no row with them."""
    try:
        to_utc(datetime.fromisoformat(text))
    except (ValueError, Invalid):
        return False
    return True


def _id_bytes(text: Any) -> bytes:
    """Return the bytes of an id. Raises SeedInvalid."""
    row_id = read_id(text) if isinstance(text, str) else None
    if row_id is None:
        raise SeedInvalid(f"a row of the seed refers to {str(text)[:60]!r}, which is no id")
    return row_id.bytes


def ensure_mind(agent_id: UUID, *, tenant_id: UUID, model: EmbeddingModel) -> None:
    """Create the mind of an agent that has none."""
    Mind.objects.get_or_create(
        agent_id=agent_id,
        defaults={
            "tenant_id": tenant_id,
            "embedding_model": model.name,
            "embedding_dimension": model.dimension,
        },
    )
