"""Read a seed line by line within limits, and verify its digests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

from arbor.errors import SeedInvalid
from arbor.seeds.digests import RunningDigests
from arbor.seeds.limits import MAX_HEADER, MAX_WINDOW_LOG, SeedLimits
from arbor.seeds.manifest import SEED_VERSION, SeedHeader, SeedManifest, SeedSignatures, SeedTrailer
from arbor.seeds.writing import LENGTH_BYTES, MAGIC, SECTION, SIGNATURES, TRAILER, VECTORS

_OPTIONS: dict[int, int] = {DecompressionParameter.window_log_max: MAX_WINDOW_LOG}
_READ = 256 * 1024
_DAMAGED = "the seed is damaged: {}; export it again, or take another copy"


class SeedInput(Protocol):
    """The file that a seed is read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """A row of a seed, and its vectors in base64 by column."""

    section: str
    values: dict[str, Any]
    vectors: dict[str, str]


class SeedReader:
    """Reads one seed; `rows` must be read to the end before the manifest is known.

    Nothing that was read may be used before the end: the digests are compared there.
    """

    def __init__(self, source: SeedInput, limits: SeedLimits | None = None) -> None:
        self._source = source
        self._limits = limits or SeedLimits()
        self._read = 0
        self._uncompressed = 0
        self._header_text = self._read_header()
        self.header = SeedHeader.read(self._header_text)
        if self.header.seed_version != SEED_VERSION:
            raise _damaged("its header has another version than the file")
        self._trailer: SeedTrailer | None = None
        self._signatures: SeedSignatures | None = None

    @property
    def manifest(self) -> SeedManifest:
        """Return the manifest, once all rows are read."""
        if self._trailer is None or self._signatures is None:
            raise RuntimeError("the manifest of a seed is known when all of its rows are read")
        return SeedManifest(
            header=self.header,
            trailer=self._trailer,
            signatures=self._signatures,
            bytes=self._read,
            uncompressed_bytes=self._uncompressed,
        )

    def rows(self) -> Iterator[SeedRow]:
        """Yield the rows in order, and compare the digests at the end. Raises SeedInvalid."""
        sections = _SectionReader(self._limits.rows)
        for line in self._lines():
            mark = line[:1]
            if self._signatures is not None:
                raise _damaged("lines follow its signatures")
            if self._trailer is not None:
                if mark != SIGNATURES:
                    raise _damaged("its trailer is not followed by signatures")
                self._signatures = SeedSignatures.read(line[1:])
            elif mark == TRAILER:
                self._trailer = self._checked(SeedTrailer.read(line[1:]), sections.digests)
            elif mark == SECTION:
                sections.begin(line)
            else:
                yield sections.row(line)
        if self._signatures is None:
            raise _damaged("it ends too early")

    def _checked(self, trailer: SeedTrailer, digests: RunningDigests) -> SeedTrailer:
        digests.end_section()
        expected = digests.trailer(self._header_text)
        if trailer.header != expected.header:
            raise _damaged("its header was changed")
        if (trailer.content, trailer.sections) != (expected.content, expected.sections):
            raise _damaged("its content does not have the digest of its trailer")
        if trailer.digest != expected.digest:
            raise _damaged("its digest is not that of its sections")
        return trailer

    def _read_header(self) -> bytes:
        start = self._exactly(len(MAGIC) + 1)
        if start[: len(MAGIC)] != MAGIC:
            raise SeedInvalid("this is not a seed: a seed is a file that `arbor seed export` has written")
        if start[-1] > SEED_VERSION:
            raise SeedInvalid(
                f"the seed has version {start[-1]}, and this Arbor reads version {SEED_VERSION}: upgrade Arbor first"
            )
        length = int.from_bytes(self._exactly(LENGTH_BYTES), "big")
        if length > MAX_HEADER:
            raise _damaged(f"its header has {length} bytes, of at most {MAX_HEADER}")
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._some(size - len(data))
            if not more:
                raise SeedInvalid("this is not a whole seed: it ends within its header")
            data += more
        return data

    def _some(self, size: int) -> bytes:
        data = self._source.read(size)
        self._read += len(data)
        if self._read > self._limits.compressed_bytes:
            raise SeedInvalid(
                f"the seed has more than {self._limits.compressed_bytes} bytes; ARBOR_SEED_MAX_MB allows larger ones"
            )
        return data

    def _lines(self) -> Iterator[bytes]:
        """Yield the decompressed lines without their ends, with no more in memory than a line and a block."""
        rest = b""
        for block in self._blocks():
            *lines, rest = (rest + block).split(b"\n") if rest else block.split(b"\n")
            if len(rest) > self._limits.row_bytes:
                raise SeedInvalid(f"a row of the seed has more than {self._limits.row_bytes} bytes")
            yield from lines
        if rest:
            raise _damaged("it ends within a line")

    def _blocks(self) -> Iterator[bytes]:
        decompressor = ZstdDecompressor(options=_OPTIONS)
        try:
            while not decompressor.eof:
                data = self._some(_READ) if decompressor.needs_input else b""
                if decompressor.needs_input and not data:
                    raise _damaged("it ends too early")
                block = decompressor.decompress(data, _READ)
                self._uncompressed += len(block)
                self._check_size()
                if block:
                    yield block
        except ZstdError as error:
            raise _damaged(str(error)) from error
        if decompressor.unused_data or self._some(1):
            raise _damaged("bytes follow its end")

    def _check_size(self) -> None:
        limits = self._limits
        most = min(limits.uncompressed_bytes, max(limits.free_bytes, limits.ratio * self._read))
        if self._uncompressed > most:
            raise SeedInvalid(
                f"the seed has {self._read} bytes and unpacks to more than {most}: nothing was read from it"
            )


class _SectionReader:
    """Reads the lines of sections, and computes their digests."""

    def __init__(self, most_rows: int) -> None:
        self.digests = RunningDigests()
        self._most_rows = most_rows
        self._rows = 0

    def begin(self, line: bytes) -> None:
        """Begin the section that the line names."""
        self.digests.end_section()
        declared = _object(line[1:])
        name, digested = declared.get("section"), declared.get("digested")
        if not (isinstance(name, str) and isinstance(digested, bool)) or self.digests.has_section(name):
            raise _damaged("the beginning of a section cannot be read")
        self.digests.begin_section(name, digested=digested)
        self.digests.add_line(line)

    def row(self, line: bytes) -> SeedRow:
        """Count a row and return it."""
        if self.digests.name is None:
            raise _damaged("a row is before the first section")
        text, _, vectors = line.partition(VECTORS)
        self._rows += 1
        if self._rows > self._most_rows:
            raise SeedInvalid(f"the seed has more than {self._most_rows} rows")
        self.digests.add_row(text)
        self.digests.add_line(line)
        return SeedRow(
            section=self.digests.name, values=_object(text), vectors=_object(vectors) if vectors else {}
        )


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise _damaged("a line is not JSON") from error
    if not isinstance(value, dict):
        raise _damaged("a line is not an object")
    return value


def _damaged(reason: str) -> SeedInvalid:
    return SeedInvalid(_DAMAGED.format(reason))
