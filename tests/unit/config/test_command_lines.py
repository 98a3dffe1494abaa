"""Command lines that code, pages and documents name: their commands and options exist."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support.command_tree import ROOT, nodes

CODE = ("arbor", "apps", "workers", "config", "bench")
#: A command line in backticks, in rich's or HTML's marks, or at the beginning of a text.
_MARKED = re.compile(r"(?:`|\[bold\]|<code>|^)\s*arbor ((?:[^`\[<]|\[(?!/))*)")
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^(?:\$ |\.venv/bin/)*arbor ([^#\n]*)", re.MULTILINE)
#: Templates of Django: tags and values.
_TAG = re.compile(r"\{[{%].*?[%}]\}")


def named_lines() -> Iterator[tuple[str, str]]:
    """Yield where a command line is named, and the line without `arbor`."""
    for path in _files():
        place = str(path.relative_to(ROOT))
        text = path.read_text(encoding="utf-8")
        if "arbor " not in text:
            continue
        if path.suffix == ".py":
            for literal in _literals(ast.parse(text)):
                yield from ((place, line) for line in _MARKED.findall(literal))
                yield from ((place, line) for line in re.findall(r"^ +arbor ([^\n]*)", literal, re.MULTILINE))
        elif path.suffix == ".html":
            yield from ((place, line) for line in _MARKED.findall(_TAG.sub("X", text)))
        else:
            for block in _FENCED.findall(text):
                yield from ((place, line) for line in _LINE.findall(block))
            yield from ((place, line) for line in re.findall(r"`arbor ([^`]*)`", _FENCED.sub("", text)))


def _files() -> Iterator[Path]:
    for folder in CODE:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "migrations" not in path.parts)
        yield from sorted((ROOT / folder).rglob("*.html"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield ROOT / "README.md"


def _literals(module: ast.Module) -> Iterator[str]:
    inner = set()
    # The walk reaches a string with values before its parts.
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            inner.update(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.value


def faults_of(line: str) -> Iterator[str]:
    """Yield commands and options of a command line that do not exist."""
    words = _words(line)
    paths: list[tuple[str, ...]] = [()]
    while words and isinstance(nodes()[paths[0]], click.Group) and not words[0].startswith("-"):
        word = words.pop(0)
        if not re.fullmatch(r"[a-z][a-z|-]*", word):
            break
        alternatives = [(*paths[0], name) for name in word.split("|")]
        if missing := [" ".join(route) for route in alternatives if route not in nodes()]:
            yield f"there is no command {missing[0]!r}"
            return
        paths = alternatives
    options = {
        name
        for route in paths
        for param in nodes()[route].params
        for name in (*param.opts, *param.secondary_opts)
    } | {"--help"}
    for word in words:
        option = re.match(r"--[a-z-]+|-[a-z]\b", word)
        if option and option[0] not in options and paths != [("manage",)]:
            yield f"{' '.join(paths[0])} has no option {option[0]}"


def documented_lines() -> Iterator[tuple[str, str]]:
    """Yield the command lines in the code blocks of the documentation, which are complete."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in _FENCED.findall(page.read_text(encoding="utf-8")):
            yield from ((str(page.relative_to(ROOT)), line) for line in _LINE.findall(block))


def usage_faults_of(line: str) -> Iterator[str]:
    """Yield why a complete command line is not parsed; files and ids of examples need not exist."""
    words = list(itertools.takewhile(lambda word: word not in ("<", ">", "|", "&&"), _words(line)))
    path: tuple[str, ...] = ()
    while words and isinstance(nodes()[path], click.Group) and (*path, words[0]) in nodes():
        path = (*path, words.pop(0))
    if path == ("manage",) or "--help" in words:
        return
    try:
        nodes()[path].make_context(" ".join(path), words)
    except click.MissingParameter as error:
        yield error.format_message()
    except click.BadParameter as error:
        if "is not one of" in error.message or "is not in the range" in error.message:
            yield error.format_message()
    except click.UsageError as error:
        yield error.format_message()


def _words(line: str) -> list[str]:
    line = line.replace("\n", " ").split("  ")[0]
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def test_named_command_lines_exist() -> None:
    lines = list(named_lines())
    assert len(lines) > 300
    assert [f"{place}: {fault}" for place, line in lines for fault in faults_of(line)] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("agent tick Vega", "there is no command 'agent tick'"),
        ("beat", "there is no command 'beat'"),
        ("ops pipeline validate|draw", "there is no command 'ops pipeline draw'"),
        ("recall Vega quince --most 3", "recall has no option --most"),
    ],
)
def test_an_invalid_command_line_is_reported(line: str, fault: str) -> None:
    assert list(faults_of(line)) == [fault]


def test_documented_command_lines_are_complete() -> None:
    lines = list(documented_lines())
    assert len(lines) > 150
    assert [f"{page}: {line}: {fault}" for page, line in lines for fault in usage_faults_of(line)] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("agent create Vega --if-missing", "Missing option '--template'."),
        ("token create ci --role king", "'king' is not one of"),
        ("agent cycle Vega --ticks 300", "300 is not in the range"),
        ("recall Vega the tides", "unexpected extra argument"),
    ],
)
def test_an_incomplete_command_line_is_reported(line: str, fault: str) -> None:
    assert fault in "".join(usage_faults_of(line))
