"""The runs that `make test` divides the tests into."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]


def files_with(text: str) -> set[Path]:
    """Return the test modules that contain a text."""
    return {path for path in TESTS.rglob("test_*.py") if text in path.read_text()}


def test_every_acceptance_test_is_in_the_folder_of_its_run() -> None:
    assert files_with("pytest.mark." + "acceptance") == set((TESTS / "acceptance").rglob("test_*.py"))
