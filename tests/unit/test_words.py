"""The check of words, on small modules and on the repository."""

from __future__ import annotations

import pytest

from tests.words import (
    GLOSSARY,
    LONGEST_TEST_NAME,
    Banned,
    check,
    check_test_names,
    compare,
    count,
    read_banned,
    shrink,
)

BANNED = Banned(names={"theme": "`cluster`"}, texts={"piece of code": '"code snippet"'})


def subjects_of(source: str, file: str = "arbor/near.py") -> list[str]:
    """Return the subjects of the findings in a module."""
    return [finding.subject for finding in check({file: f'"""Names."""\n{source}'}, BANNED)]


@pytest.mark.parametrize(
    "opening", ["What is", "How far", "Which", "Whether", "By which", "Where", "When", "Who"]
)
def test_a_docstring_does_not_open_with_a_clause(opening: str) -> None:
    for text, subjects in (
        (f"{opening} it goes.", ["docstring opens with a clause"]),
        (f"Say {opening}.", []),
    ):
        assert [finding.subject for finding in check({"a.py": f'"""{text}"""'}, BANNED)] == subjects


@pytest.mark.parametrize(
    ("docstring", "refused"),
    [
        ("A query is parsed once: text, words and time.", True),
        ("Secrets of every kind are\nstored.", True),
        ("The archive removes memories.", True),
        ("Queries, each of which is parsed once.", False),
        ("Queries that are parsed once.", False),
        ("Queries: each is parsed once.", False),
        ("Queries. Each is parsed once.", False),
        ("Explain why an agent may not act.", False),
    ],
)
def test_a_module_docstring_is_no_statement(docstring: str, refused: bool) -> None:
    subjects = ["module docstring is a statement"] * refused
    source = f'"""{docstring}"""'
    assert [finding.subject for finding in check({"a.py": source}, BANNED)] == subjects
    assert [finding.subject for finding in check({}, BANNED, tests={"tests/a.py": source})] == subjects


@pytest.mark.parametrize("source", ["class A:\n    {}", "def f():\n    {}", "async def f():\n    {}"])
def test_docstrings_of_classes_and_functions_are_checked(source: str) -> None:
    assert subjects_of(source.format('"""Whether it goes."""')) == ["docstring opens with a clause"]
    assert subjects_of(source.format('"""Return the first first."""')) == ["repeated word"]
    assert subjects_of(source.format('"""Return the first_turn turn."""')) == ["repeated word"]
    assert subjects_of(source.format('"""Return `first_turn` that that turn knows."""')) == []


def test_banned_names_are_refused_in_helpers_of_tests() -> None:
    tests = {"tests/a.py": "def theme_of(): ...\ndef test_a_theme_is_named(theme): ..."}
    assert [finding.message.partition(":")[0] for finding in check({}, BANNED, tests=tests)] == [
        "theme_of",
        "theme",
    ]


def test_a_module_needs_a_docstring() -> None:
    assert [finding.subject for finding in check({"a.py": "x = 1\n", "b.py": ""}, BANNED)] == ["no docstring"]


@pytest.mark.parametrize(
    "source",
    ["class ThemeView: ...", "def next_theme(): ...", "async def theme(): ...", "def f(*, theme): ..."],
)
def test_banned_names_are_refused_as_parts_of_names(source: str) -> None:
    assert subjects_of(source) == ["name theme"]


def test_a_module_name_is_checked_and_other_words_pass() -> None:
    assert subjects_of("x = 1", file="arbor/theme_order.py") == ["name theme"]
    assert subjects_of("def themed(atheme): ...\nclass THEMES: ...") == []


def test_texts_are_refused_in_any_string_and_across_lines() -> None:
    assert subjects_of('x = f"A piece of code, {1}"\ndef f():\n    """Keep a Piece of\n    code."""') == [
        "text piece of code",
        "text piece of code",
    ]
    assert subjects_of('x = "masterpiece of code, piece of codex"') == []


def test_texts_are_refused_in_comments() -> None:
    assert subjects_of("x = 1  # a piece of code") == ["text piece of code"]


def test_a_loop_variable_has_no_vague_name() -> None:
    assert (
        subjects_of("for each in x: ...\ny = [each for each in x]\nz = {a: b for a, one in x}")
        == ["each"] * 3
    )
    assert subjects_of("for name in each: ...") == []


def test_a_class_name_is_unique() -> None:
    sources = {"a.py": '"""A."""\nclass One: ...\nclass Command: ...', "b.py": '"""B."""\nclass One: ...\n'}
    sources["c.py"] = '"""C."""\nclass Command:\n    class One: ...\n'
    findings = check(sources, BANNED)
    assert [(finding.file, finding.subject) for finding in findings] == [
        ("a.py", "duplicate class One"),
        ("b.py", "duplicate class One"),
    ]


def test_a_long_test_name_is_refused() -> None:
    longest = "a" * LONGEST_TEST_NAME
    source = f"def test_{longest}(): ...\nclass TestIt:\n    async def test_{longest}b(self): ...\ndef {longest}bc(): ...\n"
    (finding,) = check_test_names({"tests/test_a.py": source})
    assert (finding.line, finding.subject) == (3, "long test name")
    assert "at most 60 characters after test_, got 61" in finding.message


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("test_what_is_empty_is_refused", True),
        ("test_it_ends", True),
        ("test_the_one_that_fits_is_chosen", True),
        ("test_those", True),
        ("test_items_are_read", False),
        ("test_the_ones_digit_is_read", False),
        ("what_a_helper_returns", False),
    ],
)
def test_a_test_name_opens_with_a_subject(name: str, refused: bool) -> None:
    findings = check({}, BANNED, tests={"tests/test_a.py": f"def {name}() -> None: ...\n"})
    assert [finding.subject for finding in findings] == ["test name opens with a clause"] * refused


def test_exceptions_neither_grow_nor_outlive_their_reason() -> None:
    findings = check({"a.py": '"""A."""\nfor each in x: ...\nfor each in y: ...\n'}, BANNED)
    assert list(compare(findings, {"a.py": {"each": 2}})) == []
    assert len(list(compare(findings, {"a.py": {"each": 1}}))) == 2
    (surplus,) = compare(findings, {"a.py": {"each": 3}})
    assert surplus.startswith("a.py: each: 3 exceptions, 2 needed")
    (outdated,) = compare(findings, {"a.py": {"each": 2}, "b.py": {"each": 1}})
    assert outdated.startswith("b.py")


def test_shrinking_removes_exceptions_and_adds_none() -> None:
    findings = check({"a.py": '"""What."""\nfor each in x: ...\n'}, BANNED)
    assert shrink({"a.py": {"each": 5}, "b.py": {"each": 1}}, count(findings)) == {"a.py": {"each": 1}}


def test_the_tables_of_the_glossary_are_read() -> None:
    banned = read_banned(GLOSSARY.read_text(encoding="utf-8"))
    assert {"theme", "themes", "errand", "standing"} <= banned.names.keys()
    assert {"pieces of code", "changes of self"} <= banned.texts.keys()


def test_only_tables_of_names_and_texts_in_their_section_are_read() -> None:
    section = '\n## Words not used\n| `a`, `b` | c |\n| "d e" | f |\n| G | h |\n\n## Sources\n| `x` | y |'
    assert read_banned(section) == Banned(names={"a": "c", "b": "c"}, texts={"d e": "f"})
