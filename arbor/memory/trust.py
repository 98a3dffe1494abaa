"""The sources of facts, and the trust that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from arbor.clock import check_time_zone
from arbor.errors import Invalid
from arbor.memory.content import check_line

#: The trust of a fact without a source, and the most that sources add to it (seed 004's origin; their sum is 1).
UNSUPPORTED = 0.15
SUPPORTED = 0.85
#: The most that agreement with beliefs adds to the trust of a fact (seed 004's origin).
ALIGNMENT_ADDS = 0.1
#: Trust of a source that nobody has rated.
DEFAULT_SOURCE_TRUST = 0.5
#: The most sources of one fact.
MAX_SOURCES = 100

#: Roles of the agent's own words, and the beginnings of the sources of its own notes. A summary only repeats its episode.
OWN_ROLES = ("agent", "assistant")
OWN_SOURCES = ("heartbeat:", "proposal:", "episode:")

KIND_LENGTH = 40
REFERENCE_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source of a fact. Raises Invalid."""

    #: The kind: `memory`, `document`, `person`, `url`, `conversation`…
    kind: str
    #: An id, an address or a name, which identifies the source.
    reference: str
    #: From 0 to 1.
    trust: float = DEFAULT_SOURCE_TRUST
    observed_at: datetime | None = None

    def __post_init__(self) -> None:
        for name, value, longest in (
            ("a source's kind", self.kind, KIND_LENGTH),
            ("a source's reference", self.reference, REFERENCE_LENGTH),
        ):
            if not isinstance(value, str) or not value.strip():
                raise Invalid(f"{name} must be a text, got {value!r}")
            check_line(name, value, longest)
        check_unit("a source's trust", self.trust)
        check_time_zone("a source's observed_at", self.observed_at)

    @property
    def key(self) -> str:
        """The key that identifies the source: its reference, without case and white space."""
        return " ".join(self.reference.split()).casefold()

    def to_json(self) -> dict[str, Any]:
        """Return the source as an object that `from_json` can read."""
        record: dict[str, Any] = {"kind": self.kind, "reference": self.reference, "trust": self.trust}
        if self.observed_at is not None:
            record["observed_at"] = self.observed_at.isoformat()
        return record

    @classmethod
    def from_json(cls, value: Any) -> Source:
        """Read a source: an object, or just its reference. Raises Invalid."""
        if isinstance(value, str):
            return cls(kind="unknown", reference=value.strip())
        if not isinstance(value, Mapping):
            raise Invalid(f"a source must be an object with kind and reference, got {value!r}")
        observed = value.get("observed_at")
        try:
            observed_at = datetime.fromisoformat(observed) if observed else None
        except (TypeError, ValueError) as error:
            raise Invalid(f"a source's observed_at must be an ISO date and time, got {observed!r}") from error
        return cls(
            kind=value.get("kind") or "unknown",
            reference=value.get("reference") or "",
            trust=value.get("trust", DEFAULT_SOURCE_TRUST),
            observed_at=observed_at,
        )


def check_unit(name: str, value: Any, low: float = 0.0) -> None:
    """Raise Invalid unless a value is a number from `low` to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= 1:
        raise Invalid(f"{name} must be a number from {low:g} to 1, got {value!r}")


def merge_sources(*groups: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources with distinct references, in the order of their first occurrence.

    Of several with one reference, the highest trust and the latest observation win.
    """
    by_key: dict[str, Source] = {}
    for source in (member for group in groups for member in group):
        known = by_key.get(source.key)
        if known is not None:
            observed = [version.observed_at for version in (known, source) if version.observed_at is not None]
            trust = max(known.trust, source.trust)
            by_key[source.key] = replace(known, trust=trust, observed_at=max(observed, default=None))
        else:
            by_key[source.key] = source
    return tuple(by_key.values())


def new_sources(known: Iterable[Source], sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources that are not among the known ones, each reference once."""
    keys = {source.key for source in known}
    return tuple(source for source in merge_sources(sources) if source.key not in keys)


def reinforcement(sources: Iterable[Source]) -> float:
    """Return the support of a fact by distinct sources, 0 to 1: `1 − Π(1 − trust)`, the chance that one of them is right."""
    return 1.0 - math.prod(1.0 - source.trust for source in merge_sources(sources))


def max_trust(sources: Iterable[Source]) -> float:
    """Return the highest trust that these sources allow for a fact: `0.15 + 0.85 · reinforcement` (seed 004's origin)."""
    return min(1.0, UNSUPPORTED + SUPPORTED * reinforcement(sources))


def is_own_note(*, role: str, source: str) -> bool:
    """Return whether a memory is the agent's own note: its words, or a note of a heartbeat, an accepted proposal or a summary."""
    return role in OWN_ROLES or (not role and source.startswith(OWN_SOURCES))


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A memory that a conclusion rests on: its trust, 0 to 1, and its sources, or its speaker where it has none."""

    trust: float
    speaker: Source
    sources: tuple[Source, ...] = ()


def sources_of(evidence: Iterable[Evidence]) -> tuple[Source, ...]:
    """Return the sources of a conclusion from its evidence, with trusts such that one memory allows at most its own trust.

    Several memories of one source count as one source.
    """
    return merge_sources(*(_limited_sources(memory) for memory in evidence))[:MAX_SOURCES]


def _limited_sources(memory: Evidence) -> tuple[Source, ...]:
    """Return a memory's sources, trusted so that `max_trust` of them is at most the trust of the memory.

    Only the first source is returned where a source is certain, or the memory is trusted no further than a fact without a source.
    """
    most = min(max((memory.trust - UNSUPPORTED) / SUPPORTED, 0.0), 1.0)
    if not memory.sources:
        return (replace(memory.speaker, trust=min(memory.speaker.trust, most)),)
    together = reinforcement(memory.sources)
    if together <= most:
        return memory.sources
    if together >= 1.0 or most <= 0.0:
        return tuple(replace(source, trust=min(source.trust, most)) for source in memory.sources[:1])
    # Each source is doubted more, so that the product of all doubts is `1 - most`.
    share = math.log(1.0 - most) / math.log(1.0 - together)
    return tuple(replace(source, trust=1.0 - (1.0 - source.trust) ** share) for source in memory.sources)


def semantic_trust(*, confidence: float, sources: Iterable[Source], alignment: float = 0.0) -> float:
    """Return the trust in a fact, 0 to 1: `min(confidence, max_trust)`, adjusted by the agent's beliefs.

    `alignment` with the beliefs is from -1 (contradicts them) to 1: below 0 it reduces the trust by its share, above 0 it
    adds up to 0.1, never beyond `max_trust`. Raises Invalid.
    """
    check_unit("confidence", confidence)
    check_unit("alignment with beliefs", alignment, low=-1.0)
    most = max_trust(sources)
    trust = min(confidence, most)
    adjusted = trust * (1.0 + alignment) if alignment < 0 else trust + ALIGNMENT_ADDS * alignment
    return max(0.0, min(most, adjusted))
