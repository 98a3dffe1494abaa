"""`arbor seed`: whole agents as files, and saved seeds."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from apps.fleet.seeds.sections import SeedGroup
from config.cli.commands.seed import GROUPS
from tests.integration.cli.conftest import Arbor, add_memory


def test_the_commands_offer_all_groups_of_seeds() -> None:
    assert set(GROUPS) == set(SeedGroup)


def test_an_agent_is_exported_verified_and_restored(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    file = str(tmp_path / "vega.seed")
    add_memory(arbor, "The gate code is 4711.")
    exported = arbor("seed", "export", vega, file, "--json").json
    verified = arbor("seed", "verify", file, "--json").json
    assert verified["digest"] == exported["digest"]
    assert verified["own_installation"] is True
    add_memory(arbor, "The lamp is broken.")

    saved = arbor("seed", "save", vega, "--json").json
    assert "1 added" in arbor("seed", "diff", file, saved["id"]).out
    assert "Would restore" in arbor("seed", "restore", vega, file, "--dry-run").out
    restored = arbor("seed", "restore", vega, file, "--skip", "goals", "--json").json

    assert restored["digest"] == exported["digest"]
    listed = arbor("seed", "list", "--agent", "vega", "--json").json["seeds"]
    assert [seed["reason"] for seed in listed] == ["restore", "requested"]
    assert restored["saved_seed_id"] == listed[0]["id"]
    assert "No differences" in arbor("seed", "diff", listed[0]["id"], listed[1]["id"]).out
    assert arbor("seed", "delete", listed[0]["id"]).code == 0
    assert len(arbor("seed", "list", "--json").json["seeds"]) == 1


def test_an_agent_is_forked_imported_and_merged(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    file = str(tmp_path / "lyra.seed")
    assert "none is granted" in arbor("seed", "fork", vega, "Lyra").out
    arbor("seed", "export", "Lyra", file, "--without-vectors")
    imported = arbor("seed", "import", file, "--name", "Mira", "--json").json
    assert imported["name"] == "Mira"
    assert arbor("seed", "import", file, "--name", "Mira").code == 1
    assert (
        "Would create" in arbor("seed", "import", file, "--name", "Nova", "--trust-foreign", "--dry-run").out
    )
    assert "Would merge" in arbor("seed", "merge", vega, file, "--trust-foreign", "--dry-run").out
    merged = arbor("seed", "merge", vega, file, "--json").json
    assert merged["memories"] == 0
    assert merged["known"]


def test_a_seed_that_cannot_be_written_is_refused(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    refused = arbor("seed", "export", vega, str(tmp_path / f"{'x' * 300}.seed"))
    assert (refused.code, "cannot be written: File name too long" in refused.err) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_seed_is_refused(arbor: Arbor, vega: str, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Vega, …")
    refused = arbor("seed", "restore", vega, str(file))
    assert refused.code == 1
    assert "not a seed" in refused.err
    assert "no file" in arbor("seed", "verify", str(tmp_path / "nothing")).err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nothing", "there is no file"),
        (".", "is a folder; a seed is a file"),
        ("x" * 300, "cannot be read: File name too long"),
        # A file whose first byte nobody can read, not even root, as behind a missing permission.
        pytest.param(
            "/proc/self/mem",
            "/proc/self/mem cannot be read: Input/output error",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this file"),
        ),
    ],
)
def test_a_seed_that_cannot_be_read_is_refused_in_one_line(
    arbor: Arbor, vega: str, tmp_path: Path, name: str, reason: str
) -> None:
    for command in (("verify",), ("import",), ("restore", vega), ("merge", vega)):
        refused = arbor("seed", *command, str(tmp_path / name))
        assert (refused.code, len(refused.err.splitlines())) == (1, 1)
        assert reason in refused.err


def test_a_destroyed_agent_leaves_a_seed_unless_declined(arbor: Arbor, vega: str) -> None:
    arbor("seed", "fork", vega, "Lyra")
    arbor("agent", "destroy", "Lyra", "--confirm", "Lyra", "--no-seed")
    assert arbor("seed", "list", "--json").json["seeds"] == []
    arbor("agent", "destroy", vega, "--confirm", "Vega")
    (saved,) = arbor("seed", "list", "--json").json["seeds"]
    assert (saved["name"], saved["reason"]) == ("Vega", "destroy")
    assert arbor("seed", "import", saved["id"]).code == 0


def test_a_name_that_no_file_can_have_is_refused(arbor: Arbor, one_tenant: str) -> None:
    ran = arbor("ops", "pipeline", "validate", "x" * 300)
    assert (ran.code, "File name too long" in ran.err) == (1, True)


def test_a_failed_export_leaves_no_file(
    arbor: Arbor, vega: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    ran = arbor("seed", "export", vega, str(tmp_path / "vega.seed"))
    assert (ran.code, "No space left" in ran.err, list(tmp_path.iterdir())) == (1, True, [])
