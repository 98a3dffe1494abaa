"""The format of seeds: what is written is read, and whatever was changed is refused."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from backports.zstd import ZstdCompressor
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.identity import generate_key_pair, public_id
from arbor.errors import SeedInvalid
from arbor.seeds.limits import SeedLimits
from arbor.seeds.manifest import SEED_VERSION, SeedHeader, SeedManifest, VectorModel, canonical_json
from arbor.seeds.reading import SeedReader, SeedRow
from arbor.seeds.signing import FakeSeedSigner, is_own, verify_signatures
from arbor.seeds.writing import MAGIC, SeedWriter

AGENT = UUID("0198c0de-0000-7000-8000-000000000001")
KEYS = generate_key_pair()
AUTHORITY = generate_key_pair()
TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)
VALUES = st.one_of(TEXTS, st.integers(-(2**53), 2**53), st.booleans(), st.none(), st.lists(TEXTS, max_size=3))
ROWS = st.lists(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4), max_size=5)
SECTIONS = st.dictionaries(st.sampled_from(["memories", "goals", "beliefs"]), ROWS)

type Sections = Mapping[str, list[dict[str, Any]]]


def header(**changes: Any) -> SeedHeader:
    values = {
        "id": AGENT,
        "seed_version": SEED_VERSION,
        "agent_id": AGENT,
        "public_id": public_id(KEYS.public),
        "name": "Vega",
        "captured_at": datetime(2026, 11, 23, tzinfo=UTC),
        "captured_on_node": "node",
        "capture_reason": "test",
        "arbor_version": "1",
        "vectors": VectorModel(name="wordllama", dimension=256),
    }
    return SeedHeader.model_validate(values | changes)


def seed(
    sections: Sections, *, signer: FakeSeedSigner | None = None, **changes: Any
) -> tuple[bytes, SeedManifest]:
    output = io.BytesIO()
    writer = SeedWriter(output, header(**changes))
    for name, rows in sections.items():
        writer.begin_section(name, digested=name != "history")
        for row in rows:
            writer.write_row(row, {"embedding": "AAA="} if name == "memories" else None)
    manifest = writer.finish(signer or FakeSeedSigner(KEYS, AUTHORITY))
    return output.getvalue(), manifest


def read(data: bytes, limits: SeedLimits | None = None) -> tuple[list[SeedRow], SeedManifest]:
    reader = SeedReader(io.BytesIO(data), limits)
    rows = list(reader.rows())
    verify_signatures(reader.manifest)
    return rows, reader.manifest


MANY: Sections = {"memories": [{"id": str(number), "content": f"text {number}"} for number in range(200)]}


@given(SECTIONS)
def test_a_written_seed_is_read(sections: Sections) -> None:
    data, written = seed(sections)

    rows, manifest = read(data)

    assert manifest == written
    assert manifest.rows == {name: len(rows) for name, rows in sections.items()}
    assert [(row.section, row.values) for row in rows] == [
        (name, row) for name, rows in sections.items() for row in rows
    ]
    assert all(row.vectors == {"embedding": "AAA="} for row in rows if row.section == "memories")


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_of_capture_beyond_all_years_is_refused(at: str) -> None:
    written = header().model_dump(mode="json") | {"captured_at": at}
    with pytest.raises(SeedInvalid, match=r"captured_at: .*years 1 to 9999"):
        SeedHeader.read(canonical_json(written))


def test_a_time_of_capture_is_read_in_utc() -> None:
    for at in ("2026-11-23T00:00:00", "2026-11-23T02:00:00+02:00"):
        assert header(captured_at=at).captured_at == datetime(2026, 11, 23, tzinfo=UTC)


@given(SECTIONS)
def test_the_digest_is_of_the_state_alone(sections: Sections) -> None:
    digest = seed(sections)[1].trailer.digest

    assert seed(dict(reversed(list(sections.items()))), capture_reason="again")[1].trailer.digest == digest
    assert seed({**sections, "history": [{"id": "1"}]})[1].trailer.digest == digest
    assert seed({**sections, "aspects": [{"id": "1"}]})[1].trailer.digest != digest


def test_a_changed_bit_is_refused_or_means_nothing() -> None:
    data, _ = seed(MANY)
    expected = read(data)
    places = random.Random(13)
    refused = 0

    for _ in range(200):
        changed = bytearray(data)
        changed[places.randrange(len(data))] ^= 1 << places.randrange(8)
        try:
            # A few bits of a frame's header mean nothing, such as those of the size of its window.
            assert read(bytes(changed)) == expected
        except SeedInvalid:
            refused += 1

    assert refused > 190


def test_a_truncated_seed_is_refused() -> None:
    data, _ = seed(MANY)

    for length in range(0, len(data), 7):
        with pytest.raises(SeedInvalid):
            read(data[:length])


def test_bytes_after_the_end_are_refused() -> None:
    data, _ = seed(MANY)

    with pytest.raises(SeedInvalid, match="follow its end"):
        read(data + b"\0")


def test_another_file_is_refused() -> None:
    with pytest.raises(SeedInvalid, match="not a seed"):
        read(b"PK\3\4" + bytes(100))


def test_a_newer_seed_is_refused() -> None:
    data, _ = seed(MANY)

    with pytest.raises(SeedInvalid, match="upgrade Arbor"):
        read(MAGIC + bytes([SEED_VERSION + 1]) + data[len(MAGIC) + 1 :])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (SeedLimits(compressed_bytes=500), "more than 500 bytes"),
        (SeedLimits(uncompressed_bytes=2000), "unpacks to more"),
        (SeedLimits(ratio=2, free_bytes=0), "unpacks to more"),
        (SeedLimits(rows=100), "more than 100 rows"),
    ],
)
def test_a_large_seed_is_refused(limits: SeedLimits, message: str) -> None:
    data, _ = seed(MANY)

    with pytest.raises(SeedInvalid, match=message):
        read(data, limits)


def test_a_decompression_bomb_is_refused() -> None:
    plain = seed({})[0]
    length = int.from_bytes(plain[len(MAGIC) + 1 : len(MAGIC) + 5], "big")
    bomb = b'#{"digested":true,"section":"memories"}\n' + (b'{"a":"%s"}\n' % (b"0" * 8183) * (3 * 1024))
    frame = ZstdCompressor().compress(bomb, ZstdCompressor.FLUSH_FRAME)

    with pytest.raises(SeedInvalid, match="unpacks to more"):
        read(plain[: len(MAGIC) + 5 + length] + frame)


def test_a_long_row_is_refused() -> None:
    data, _ = seed({"memories": [{"content": "x" * 700_000}]})

    with pytest.raises(SeedInvalid, match="a row"):
        read(data, SeedLimits(row_bytes=100_000))


def test_a_seed_of_another_agents_key_is_refused() -> None:
    data, _ = seed(MANY, signer=FakeSeedSigner(generate_key_pair(), AUTHORITY))

    with pytest.raises(SeedInvalid, match="another agent"):
        read(data)


def test_another_authority_is_known_as_foreign() -> None:
    manifest = seed(MANY)[1]

    assert is_own(manifest, [generate_key_pair().public, AUTHORITY.public])
    assert not is_own(manifest, [generate_key_pair().public])
