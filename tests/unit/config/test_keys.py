"""The source of the master keys: read at each use, replaced atomically, one rotation at a time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.sealing import key_id, parse_master_key
from config import keys as key_sources
from config.keys import KeySource
from config.secrets import new_master_key


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "master_key"
    write(file, new_master_key())
    return file


def write(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text + "\n")


def id_in(file: Path) -> str:
    return key_id(parse_master_key(file.read_text()))


def test_a_running_process_reads_the_new_key(file: Path) -> None:
    source = KeySource(file=file)
    before = source.read()
    rotated = KeySource(file=file).begin_rotation()
    assert before is not None
    assert source.read() == rotated
    assert (rotated.other, rotated.other_id) == (before.current, before.current_id)
    assert rotated.current_id not in (None, before.current_id)


def test_both_files_are_for_their_owner_only(file: Path) -> None:
    KeySource(file=file).begin_rotation()
    assert sorted(path.name for path in file.parent.iterdir()) == ["master_key", "master_key.other"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}


def test_a_second_rotation_makes_no_third_key(file: Path) -> None:
    source = KeySource(file=file)
    assert source.begin_rotation() == source.begin_rotation()


def test_a_rotation_killed_between_its_files_goes_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, first = KeySource(file=file), id_in(file)

    def killed() -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(key_sources, "new_master_key", killed)
        with pytest.raises(KeyboardInterrupt):
            source.begin_rotation()
    interrupted = source.read()
    assert interrupted is not None
    assert interrupted.ids == (first,), "the old key alone is open, in both files"
    assert source.begin_rotation().other_id == first


def test_the_other_key_is_dropped(file: Path) -> None:
    source = KeySource(file=file)
    keys = source.begin_rotation()
    source.drop_other()
    left = source.read()
    assert left is not None
    assert left.ids == (keys.current_id,)
    assert [path.name for path in file.parent.iterdir()] == ["master_key"]


def test_a_key_readable_by_others_is_refused(file: Path) -> None:
    source = KeySource(file=file)
    source.begin_rotation()
    source.other_file.chmod(0o644)
    with pytest.raises(ConfigurationInvalid, match=r"chmod 600 .*master_key\.other"):
        source.read()


def test_keys_of_the_environment_cannot_be_written() -> None:
    source = KeySource(current_text=new_master_key())
    with pytest.raises(ConfigurationInvalid, match="the present one as ARBOR_OTHER_MASTER_KEY"):
        source.begin_rotation()
    with pytest.raises(ConfigurationInvalid, match="ARBOR_OTHER_MASTER_KEY is no longer needed"):
        KeySource(current_text=new_master_key(), other_text=new_master_key()).drop_other()


def test_a_folder_that_cannot_be_written_is_reported(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ConfigurationInvalid, match=r"the present one into master_key\.other beside it"):
        KeySource(file=file).begin_rotation()
    with pytest.raises(ConfigurationInvalid, match=r"cannot be written: remove .*master_key\.other for all"):
        KeySource(file=file).drop_other()


@pytest.mark.parametrize("name", ["ARBOR_MASTER_KEY", "ARBOR_OTHER_MASTER_KEY"])
def test_a_text_that_is_no_key_is_named_by_its_setting(name: str) -> None:
    texts = {"ARBOR_MASTER_KEY": new_master_key(), "ARBOR_OTHER_MASTER_KEY": new_master_key(), name: "short"}
    with pytest.raises(ConfigurationInvalid, match=f"^{name} must be 32 random bytes"):
        KeySource(current_text=texts["ARBOR_MASTER_KEY"], other_text=texts["ARBOR_OTHER_MASTER_KEY"]).read()


def test_the_environment_names_the_source(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KeySource.of_environment().file is None, "tests set the key itself"
    monkeypatch.delenv("ARBOR_MASTER_KEY")
    monkeypatch.setenv("ARBOR_MASTER_KEY_FILE", str(file))
    assert KeySource.of_environment().file == file
    monkeypatch.setenv("ARBOR_MASTER_KEY_FILE", str(file.with_name("missing")))
    with pytest.raises(ConfigurationInvalid, match="missing cannot be read"):
        KeySource.of_environment()


def test_there_is_no_key_before_the_first_start(tmp_path: Path) -> None:
    source = KeySource(file=tmp_path / "master_key")
    assert source.read() is None
    with pytest.raises(ConfigurationInvalid, match="no master key to rotate"):
        source.begin_rotation()
