"""The check of words: `python -m tests.words`, a part of `make check`.

`docs/glossary.md` lists the names and texts that are not used, and the rules for docstrings, loop variables, class names and test names.
`words_exceptions.json` lists, for each file, how many findings are allowed. The list may only shrink: the check fails at a finding beyond
it, and at an exception that is no longer needed. `--shrink` removes such exceptions; where there is no list, it makes one.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLOSSARY = ROOT / "docs/glossary.md"
EXCEPTIONS = Path(__file__).with_name("words_exceptions.json")
LAYERS = ("arbor", "apps", "workers", "config")
TESTS = "tests"
#: Django looks for this class in each of its commands.
PRESCRIBED_CLASSES = {"Command"}
#: The most characters of a test name after `test_`.
LONGEST_TEST_NAME = 60

_OPENING = re.compile(r"(What|How|Which|Whether|By which|Where|When|Who)\b")
_TEST_OPENING = re.compile(
    r"(what|which|it|nothing|who|where|whatever|whoever|how|those|that|the_one)(?=_|$)"
)
#: A repeated word, also after a name that ends in it ("the first_turn turn"), as careless replacements cause.
_REPEATED = re.compile(r"\b(?!that\b|had\b)([a-z]{2,}) \1\b|(?<![\w`.])[a-z]+_([a-z]+) \2\b")
#: The main clause of a sentence: the text before the first mark, and before a word that opens another clause.
_MAIN_CLAUSE = re.compile(
    r"[^:,;.(`]*?(?=[:,;.(`]|$|\b(?:that|which|who|whose|whom|what|how|why|where|whether|when|while|if|as|until"
    r"|unless|after|before|so|than|because)\b)",
    re.IGNORECASE,
)
#: Verb forms that make a statement of a main clause: those that are no nouns, and no imperatives.
_FINITE_VERB = re.compile(
    r"\b(is|are|was|were|has|had|cannot|could|may|might|must|shall|should|would|does|becomes?|belongs?|equals?"
    r"|happens?|reaches|stays|removes|decides)\b"
)
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: The subjects of findings that no table names.
NO_DOCSTRING, CLAUSE, STATEMENT, VAGUE_VARIABLE, DUPLICATE = (
    "no docstring",
    "docstring opens with a clause",
    "module docstring is a statement",
    "each",
    "duplicate class",
)
REPEATED = "repeated word"
LONG_TEST, CLAUSE_TEST = "long test name", "test name opens with a clause"
#: Names of loop variables that do not say what the loop goes through.
_VAGUE_VARIABLES = {"each", "one", "some"}

type Exceptions = dict[str, dict[str, int]]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One breach of a rule. `subject` is what exceptions are counted by."""

    file: str
    line: int
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Banned:
    """Names and texts that are not used, each in lower case, with what to write instead."""

    names: Mapping[str, str]
    texts: Mapping[str, str]

    def texts_in(self, value: str) -> Iterator[str]:
        """Yield the banned texts in a string, once for each occurrence."""
        lower = " ".join(value.lower().split())
        for text in self.texts:
            if text in lower:
                yield from re.findall(rf"\b{re.escape(text)}\b", lower)


def read_banned(glossary: str) -> Banned:
    """Read the two tables of the glossary's section about words that are not used."""
    section = glossary.partition("\n## Words not used")[2].partition("\n## ")[0]
    names: dict[str, str] = {}
    texts: dict[str, str] = {}
    for words, instead in re.findall(r"^\| (.+?) \| (.+) \|$", section, flags=re.MULTILINE):
        if re.fullmatch(r"(`[a-z_]+`(, )?)+", words):
            names |= dict.fromkeys(re.findall(r"`(\w+)`", words), instead)
        elif words.startswith('"'):
            texts |= dict.fromkeys(re.findall(r'"([^"]+)"', words), instead)
    return Banned(names=names, texts=texts)


def check_source(file: str, source: str, banned: Banned) -> Iterator[Finding]:
    """Yield the findings in one module, except duplicate classes."""
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree) or ""

    def finding(line: int, subject: str, message: str) -> Finding:
        return Finding(file=file, line=line, subject=subject, message=message)

    if source.strip() and not docstring:
        yield finding(1, NO_DOCSTRING, "the module needs a docstring")
    yield from check_module_docstring(file, docstring)
    yield from _check_names(file, _names(file, tree), banned)
    for line, text in _docstrings(tree):
        if opening := _OPENING.match(text):
            yield finding(
                line, CLAUSE, f"the docstring begins with {opening[0]}: begin with a verb or a noun"
            )
        for repeated in _REPEATED.finditer(text):
            yield finding(line, REPEATED, f'"{repeated[0]}": a word is repeated')
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for text in banned.texts_in(token.string):
                yield finding(token.start[0], f"text {text}", f'"{text}": rather {banned.texts[text]}')
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(value)):
                for text in banned.texts_in(value):
                    yield finding(node.lineno, f"text {text}", f'"{text}": rather {banned.texts[text]}')
            case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
                for variable in ast.walk(target):
                    if isinstance(variable, ast.Name) and variable.id in _VAGUE_VARIABLES:
                        yield finding(
                            variable.lineno,
                            VAGUE_VARIABLE,
                            f"name the loop variable after the thing, not {variable.id}",
                        )


def check_module_docstring(file: str, docstring: str) -> Iterator[Finding]:
    """Yield the finding in a module docstring whose first sentence is a statement, such as "A query is parsed once"."""
    main_clause = _MAIN_CLAUSE.match(" ".join(docstring.split()))
    if main_clause and (verb := _FINITE_VERB.search(main_clause[0])):
        message = (
            f'the module docstring is a statement ("{verb[0]}"): write a noun phrase, or begin with a verb'
        )
        yield Finding(file=file, line=1, subject=STATEMENT, message=message)


def _names(file: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines: its own, and those of classes, functions and parameters."""
    yield 1, Path(file).stem
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes and its functions, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def check_helper_names(file: str, source: str, banned: Banned) -> Iterator[Finding]:
    """Yield banned names in a test module, except in the names of tests, which are sentences."""
    names = _names(file, ast.parse(source))
    return _check_names(file, (named for named in names if not named[1].startswith("test_")), banned)


def _check_names(file: str, names: Iterable[tuple[int, str]], banned: Banned) -> Iterator[Finding]:
    """Yield the names that contain a banned one, each with its line."""
    for line, name in names:
        for part in {part.lower() for part in _NAME_PART.findall(name)} & banned.names.keys():
            message = f"{name}: not {part}, but {banned.names[part]}"
            yield Finding(file=file, line=line, subject=f"name {part}", message=message)


def check_test_names(sources: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the names of tests that are too long, or open with a clause instead of a subject."""
    for file, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith(
                "test_"
            ):
                continue
            sentence = node.name.removeprefix("test_")
            if len(sentence) > LONGEST_TEST_NAME:
                message = (
                    f"{node.name}: at most {LONGEST_TEST_NAME} characters after test_, got {len(sentence)}"
                )
                yield Finding(file=file, line=node.lineno, subject=LONG_TEST, message=message)
            if opening := _TEST_OPENING.match(sentence):
                message = f"{node.name}: not {opening[0]}, but begin with a subject"
                yield Finding(file=file, line=node.lineno, subject=CLAUSE_TEST, message=message)


def check_classes(sources: Mapping[str, str]) -> Iterator[Finding]:
    """Yield module-level classes whose name is that of a class of another module too."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for file, source in sources.items():
        for line, text in enumerate(source.splitlines(), start=1):
            if match := re.match(r"class (\w+)", text):
                places[match[1]].append((file, line))
    for name, found in places.items():
        if len(found) > 1 and name not in PRESCRIBED_CLASSES:
            for file, line in found:
                others = ", ".join(other for other, _ in found if other != file)
                message = f"class {name} is in {others} too: a class name is unique"
                yield Finding(file=file, line=line, subject=f"{DUPLICATE} {name}", message=message)


def check(
    sources: Mapping[str, str], banned: Banned, *, tests: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return the findings in modules and in the names of tests, in the order of files and lines."""
    found = [*check_classes(sources), *check_test_names(tests or {})]
    for file, source in (tests or {}).items():
        found += check_helper_names(file, source, banned)
        found += check_module_docstring(file, ast.get_docstring(ast.parse(source)) or "")
    for file, source in sources.items():
        found += check_source(file, source, banned)
    return sorted(found, key=lambda finding: (finding.file, finding.line, finding.subject))


def count(findings: Iterable[Finding]) -> Exceptions:
    """Count the findings by file and subject."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for finding in findings:
        counts[finding.file][finding.subject] += 1
    return {file: dict(sorted(subjects.items())) for file, subjects in sorted(counts.items())}


def compare(findings: Iterable[Finding], exceptions: Exceptions) -> Iterator[str]:
    """Yield a line for each finding beyond the exceptions, and for each exception that is no longer needed."""
    findings = list(findings)
    counts = count(findings)
    for finding in findings:
        if counts[finding.file][finding.subject] > exceptions.get(finding.file, {}).get(finding.subject, 0):
            yield str(finding)
    for file, subjects in exceptions.items():
        for subject, allowed in subjects.items():
            left = counts.get(file, {}).get(subject, 0)
            if left < allowed:
                yield f"{file}: {subject}: {allowed} exceptions, {left} needed: run python -m tests.words --shrink"


def shrink(exceptions: Exceptions, counts: Exceptions) -> Exceptions:
    """Return the exceptions that are still needed, none of them new."""
    kept = {
        file: {
            subject: min(allowed, counts.get(file, {}).get(subject, 0))
            for subject, allowed in subjects.items()
        }
        for file, subjects in exceptions.items()
    }
    return {
        file: {subject: number for subject, number in subjects.items() if number}
        for file, subjects in kept.items()
        if any(subjects.values())
    }


def read_sources(folders: Iterable[str] = LAYERS) -> dict[str, str]:
    """Read the modules of folders, by default of the four layers, without migrations."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "migrations" not in path.parts
    }


def read_exceptions() -> Exceptions | None:
    """Read the list of exceptions; None where there is none."""
    if not EXCEPTIONS.exists():
        return None
    exceptions: Exceptions = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    return exceptions


def write_exceptions(exceptions: Exceptions) -> None:
    """Write the list, a line for each file."""
    lines = (f"{json.dumps(file)}: {json.dumps(subjects)}" for file, subjects in sorted(exceptions.items()))
    EXCEPTIONS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> int:
    """Check all modules; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Check the words of names and texts against docs/glossary.md."
    )
    parser.add_argument(
        "--shrink", action="store_true", help="remove the exceptions that are no longer needed"
    )
    banned = read_banned(GLOSSARY.read_text(encoding="utf-8"))
    findings = check(read_sources(), banned, tests=read_sources([TESTS]))
    exceptions = read_exceptions()
    if parser.parse_args().shrink:
        counts = count(findings)
        exceptions = counts if exceptions is None else shrink(exceptions, counts)
        write_exceptions(exceptions)
    problems = list(compare(findings, exceptions or {}))
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
