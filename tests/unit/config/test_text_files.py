"""Reading text files and standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from arbor.errors import Invalid
from config.cli.kit.text_files import read_text


def named_text(content: bytes, name: str) -> io.TextIOWrapper:
    raw = io.BytesIO(content)
    raw.name = name
    return io.TextIOWrapper(raw, encoding="utf-8")


def test_text_is_returned_whole() -> None:
    assert read_text(named_text("café\n\n".encode(), "menu.txt")) == "café\n\n"


@pytest.mark.parametrize(("name", "shown"), [("menu.txt", "menu.txt"), ("<stdin>", "standard input")])
def test_text_that_is_not_utf_8_is_refused_by_its_name(name: str, shown: str) -> None:
    with pytest.raises(Invalid, match=f"^{shown} must be text in UTF-8$"):
        read_text(named_text(b"caf\xe9", name))


def test_a_path_is_read_like_an_open_file(tmp_path: Path) -> None:
    menu = tmp_path / "menu.txt"
    menu.write_bytes("café\n".encode())
    assert read_text(menu) == "café\n"
    menu.write_bytes(b"caf\xe9")
    with pytest.raises(Invalid, match=f"^{menu} must be text in UTF-8$"):
        read_text(menu)
    menu.unlink()
    with pytest.raises(Invalid, match=f"^{menu} cannot be read: No such file or directory$"):
        read_text(menu)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this file")
def test_a_file_that_fails_is_named() -> None:
    with (
        open("/proc/self/mem", encoding="utf-8") as file,
        pytest.raises(Invalid, match=r"^/proc/self/mem cannot be read: Input/output error$"),
    ):
        read_text(file)
