"""The list of domains that agents may read; empty by default."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from arbor.errors import ConfigurationInvalid

EVERYWHERE = "*"


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowList:
    """The allowed domains, each with its subdomains; without any, no page may be read."""

    domains: frozenset[str] = frozenset()
    everywhere: bool = False

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Parse a setting: `*`, or domains such as `example.org`. Raises ConfigurationInvalid for anything else."""
        cleaned = {entry.strip().lower().rstrip(".") for entry in entries if entry.strip()}
        for entry in cleaned - {EVERYWHERE}:
            if not all(part and part.replace("-", "").isalnum() for part in entry.split(".")):
                raise ConfigurationInvalid(
                    f"an allowed domain is like example.org, without scheme, port or path, got {entry!r}"
                )
        return cls(domains=frozenset(cleaned - {EVERYWHERE}), everywhere=EVERYWHERE in cleaned)

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.domains)

    def permits(self, host: str) -> bool:
        """Return whether a page of this host may be read."""
        if self.everywhere:
            return True
        labels = host.lower().rstrip(".").split(".")
        return any(".".join(labels[start:]) in self.domains for start in range(len(labels)))
