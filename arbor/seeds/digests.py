"""The digests of a seed's lines, computed while it is written or read."""

from __future__ import annotations

import hashlib

from arbor.seeds.manifest import SectionDigest, SeedTrailer, state_digest


class RunningDigests:
    """Digests of the lines so far."""

    def __init__(self) -> None:
        #: The name of the open section; None before the first one and after the last.
        self.name: str | None = None
        self._is_digested = False
        self._rows = 0
        self._section = hashlib.sha256()
        self._content = hashlib.sha256()
        self._sections: list[SectionDigest] = []
        self._digested: dict[str, str] = {}

    def begin_section(self, name: str, *, digested: bool) -> None:
        """End the open section and begin another; one that is not digested is not part of the agent's state."""
        self.end_section()
        self.name, self._is_digested = name, digested

    def has_section(self, name: str) -> bool:
        """Return whether an ended section has this name."""
        return any(section.name == name for section in self._sections)

    def add_row(self, text: bytes) -> None:
        """Add a row of the open section, without its vectors."""
        self._section.update(text)
        self._section.update(b"\n")
        self._rows += 1

    def add_line(self, line: bytes) -> None:
        """Add a line of any kind, without its end."""
        self._content.update(line)
        self._content.update(b"\n")

    def end_section(self) -> None:
        """End the open section, if any."""
        if self.name is None:
            return
        digest = self._section.hexdigest()
        self._sections.append(SectionDigest(name=self.name, rows=self._rows, digest=digest))
        if self._is_digested:
            self._digested[self.name] = digest
        self.name, self._rows, self._section = None, 0, hashlib.sha256()

    def trailer(self, header: bytes) -> SeedTrailer:
        """Return the trailer of the ended sections behind an encoded header."""
        return SeedTrailer(
            header=hashlib.sha256(header).hexdigest(),
            sections=tuple(self._sections),
            digest=state_digest(self._digested),
            content=self._content.hexdigest(),
        )
