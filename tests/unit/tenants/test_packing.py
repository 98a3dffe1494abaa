"""JSON as compressed bytes."""

from __future__ import annotations

import hashlib
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from backports.zstd import ZstdCompressor, ZstdDict
from hypothesis import given
from hypothesis import strategies as st

from apps.tenants.encoding import to_json_bytes
from apps.tenants.packing import (
    DEFLATED,
    DEFLATED_BY_DICTIONARY,
    DICTIONARY,
    FIRST_DICTIONARY,
    PLAIN,
    SECOND_DICTIONARY,
    ZSTD,
    ZSTD_BY_SECOND,
    pack,
    pack_text,
    sql_literal,
    unpack,
    unpack_list,
    unpack_text,
)

#: A small value, a medium one, and one of the size of a situation.
SMALL: dict[str, Any] = {"a": [1, 2.5, None, True, "“ä”\n\x00"]}
MEDIUM = {"lines": [f"line {number} of a few" for number in range(20)]}
LARGE = {"lines": [f"line {number} of quite a few, with more to say" for number in range(200)]}
FORMS = [(SMALL, PLAIN), (MEDIUM, ZSTD), (LARGE, ZSTD)]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize(("value", "form"), FORMS)
def test_a_value_is_restored_from_the_form_of_its_size(value: Any, form: bytes) -> None:
    packed = pack(value)

    assert packed[:1] == form
    assert unpack(packed) == value


@pytest.mark.parametrize("size", [2, 63, 64, 4096, 100_000])
def test_a_text_is_restored_byte_for_byte(size: int) -> None:
    text = b'"' + b"x" * (size - 2) + b'"'

    assert unpack_text(pack_text(text)) == text


@given(json_values)
def test_any_json_value_is_restored(value: Any) -> None:
    assert unpack(pack(value)) == value


@given(st.lists(st.lists(json_values, max_size=40), max_size=4))
def test_lists_appended_to_each_other_are_read_as_one(lists: list[list[Any]]) -> None:
    packed = b"".join(pack(items) for items in lists)

    assert unpack_list(packed) == [item for items in lists for item in items]


def deflated(value: Any) -> bytes:
    return DEFLATED + zlib.compress(to_json_bytes(value))


def deflated_by_dictionary(value: Any) -> bytes:
    stream = zlib.compressobj(zdict=FIRST_DICTIONARY.read_bytes())
    return DEFLATED_BY_DICTIONARY + stream.compress(to_json_bytes(value)) + stream.flush()


def zstd_by_second(value: Any) -> bytes:
    compressor = ZstdCompressor(zstd_dict=ZstdDict(SECOND_DICTIONARY.read_bytes()))
    return ZSTD_BY_SECOND + compressor.compress(to_json_bytes(value), ZstdCompressor.FLUSH_FRAME)


@pytest.mark.parametrize("packed", [deflated(LARGE), deflated_by_dictionary(LARGE), zstd_by_second(LARGE)])
def test_values_packed_by_older_versions_are_read(packed: bytes) -> None:
    assert unpack(packed) == LARGE


def test_lists_of_all_forms_are_read_as_one() -> None:
    older = deflated([LARGE]) + zstd_by_second([SMALL]) + deflated_by_dictionary([MEDIUM])
    packed = pack([SMALL]) + older + pack([LARGE]) + pack([]) + pack([MEDIUM]) + pack([SMALL])

    assert unpack_list(packed) == [SMALL, LARGE, SMALL, MEDIUM, LARGE, MEDIUM, SMALL]


def test_threads_pack_at_the_same_time() -> None:
    values = [{"lines": [f"line {line} of value {number}" for line in range(500)]} for number in range(40)]

    with ThreadPoolExecutor(8) as pool:
        assert [unpack(packed) for packed in pool.map(pack, values)] == values


def test_lone_surrogates_are_restored() -> None:
    assert unpack(pack({"text": "\ud83d"})) == {"text": "\ud83d"}


@pytest.mark.parametrize("value", [SMALL, MEDIUM, LARGE])
def test_bytes_after_a_packed_value_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="got 3 more bytes"):
        unpack(pack(value) + pack({}))


@pytest.mark.parametrize("value", [MEDIUM, LARGE])
def test_truncated_or_altered_bytes_are_refused(value: Any) -> None:
    packed = pack(value)

    with pytest.raises(ValueError, match="is truncated"):
        unpack(packed[:-1])
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(packed[:-1] + bytes([packed[-1] ^ 1]))


@pytest.mark.parametrize("packed", [b"", b"\x07{}", b"{}"])
def test_an_unknown_form_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="begins with its format"):
        unpack(packed)


def test_a_constant_of_sql_contains_the_packed_bytes() -> None:
    assert sql_literal({}) == "'\\x007b7d'::bytea"


@pytest.mark.parametrize(
    ("dictionary", "digest"),
    [
        (FIRST_DICTIONARY, "d3d50c0f16e8c8364c5fb351efd5aa27d965c4079a899c74ff80e3008ab29a6a"),
        (DICTIONARY, "aa4b7db4377e118b737ee8da39972e055da2d108696711f9dcfdb34b13f0740c"),
        (SECOND_DICTIONARY, "83aab065b18af33388d23146dacd6fa882aef4fa82dc535b2a3e8bca13a8ee0d"),
    ],
)
def test_the_dictionaries_are_those_that_rows_were_packed_with(dictionary: Path, digest: str) -> None:
    # A new dictionary needs a new form: stored rows cannot be read with a changed one.
    assert hashlib.sha256(dictionary.read_bytes()).hexdigest() == digest
