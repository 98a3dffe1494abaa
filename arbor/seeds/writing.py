"""Write a seed: a header, compressed sections of rows, and a signed trailer.

A file is MAGIC, the version in one byte, the length of the header in four bytes, the header as JSON, and one zstd frame of lines.
A line `#{…}` begins a section; a row is canonical JSON and, after a tab, its vectors; `={…}` is the trailer and `!{…}` the
signatures. JSON has no line breaks and no tabs, so that lines need no escapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from backports.zstd import CompressionParameter, ZstdCompressor

from arbor.seeds.digests import RunningDigests
from arbor.seeds.manifest import SeedHeader, SeedManifest, SeedSignatures, canonical_json

MAGIC = b"ARBORSEED"
SECTION, TRAILER, SIGNATURES, VECTORS = b"#", b"=", b"!", b"\t"
LENGTH_BYTES = 4

_OPTIONS: dict[int, int] = {
    CompressionParameter.compression_level: 3,
    CompressionParameter.checksum_flag: 1,
}
#: Bytes of lines that are compressed at once.
_BLOCK = 256 * 1024


class SeedOutput(Protocol):
    """The file, or part of a file, that a seed is written to."""

    def write(self, data: bytes, /) -> Any:
        """Write bytes."""


class SeedWriter:
    """Writes one seed, section by section."""

    def __init__(self, output: SeedOutput, header: SeedHeader) -> None:
        self._output = output
        self._header = header
        self._compressor = ZstdCompressor(options=_OPTIONS)
        self._digests = RunningDigests()
        self._lines: list[bytes] = []
        self._waiting = self._written = self._uncompressed = 0
        encoded = header.encoded()
        self._put(MAGIC + bytes([header.seed_version]) + len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded)

    def begin_section(self, name: str, *, digested: bool = True) -> None:
        """Begin a section; one that is not digested is not part of the agent's state."""
        self._digests.begin_section(name, digested=digested)
        self._line(SECTION + canonical_json({"section": name, "digested": digested}))

    def write_row(self, row: Mapping[str, Any], vectors: Mapping[str, str] | None = None) -> None:
        """Write a row, and its vectors as base64 of half-precision numbers by column."""
        text = canonical_json(row)
        self._digests.add_row(text)
        self._line(text + VECTORS + canonical_json(vectors) if vectors else text)

    def finish(self, sign: Callable[[bytes], SeedSignatures]) -> SeedManifest:
        """Write the trailer and its signatures, and return the manifest."""
        self._digests.end_section()
        trailer = self._digests.trailer(self._header.encoded())
        signatures = sign(trailer.signed_bytes())
        self._line(TRAILER + trailer.encoded())
        self._line(SIGNATURES + signatures.encoded())
        self._flush()
        self._put(self._compressor.flush(ZstdCompressor.FLUSH_FRAME))
        return SeedManifest(
            header=self._header,
            trailer=trailer,
            signatures=signatures,
            bytes=self._written,
            uncompressed_bytes=self._uncompressed,
        )

    def _line(self, text: bytes) -> None:
        self._digests.add_line(text)
        line = text + b"\n"
        self._lines.append(line)
        self._waiting += len(line)
        self._uncompressed += len(line)
        if self._waiting >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        self._put(self._compressor.compress(b"".join(self._lines)))
        self._lines, self._waiting = [], 0

    def _put(self, data: bytes) -> None:
        if data:
            self._output.write(data)
            self._written += len(data)
