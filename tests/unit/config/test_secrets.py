"""Secrets: created once, readable by the owner only, never replaced."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.sealing import parse_master_key
from config import secrets
from config.environment import secret
from config.secrets import SecretFolder, SecretName, read_secret


@pytest.fixture
def folder(tmp_path: Path) -> SecretFolder:
    return SecretFolder(path=tmp_path / "secrets")


def test_a_secret_is_created_on_first_use_and_never_changes(folder: SecretFolder) -> None:
    first = folder.ensure(SecretName.OPERATOR_PASSWORD)
    assert folder.ensure(SecretName.OPERATOR_PASSWORD) == first
    assert folder.read(SecretName.OPERATOR_PASSWORD) == first


def test_a_missing_secret_reads_as_none(folder: SecretFolder) -> None:
    assert folder.read(SecretName.MASTER_KEY) is None


@pytest.mark.parametrize("name", SecretName)
def test_every_secret_is_for_the_owner_only(folder: SecretFolder, name: SecretName) -> None:
    folder.ensure(name)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.file(name).stat().st_mode) == 0o600
    assert [file.name for file in folder.path.iterdir()] == [name.value], "nothing half-made is left"


def test_the_master_key_is_one_that_arbor_reads(folder: SecretFolder) -> None:
    assert len(parse_master_key(folder.ensure(SecretName.MASTER_KEY))) == 32


def test_two_first_starts_agree_on_one_secret(folder: SecretFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def created_by_another_process() -> str:
        folder.file(SecretName.MASTER_KEY).write_text("theirs\n")
        folder.file(SecretName.MASTER_KEY).chmod(0o600)
        return "ours"

    monkeypatch.setitem(secrets._MAKERS, SecretName.MASTER_KEY, created_by_another_process)
    assert folder.ensure(SecretName.MASTER_KEY) == "theirs"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_secret_readable_by_others_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "key"
    file.write_text("open secret")
    file.chmod(mode)
    with pytest.raises(ConfigurationInvalid, match=r"chmod 600 .*key"):
        read_secret(file)


def test_mounted_secrets_may_have_the_mode_their_platform_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "MOUNTED_SECRETS", tmp_path)
    (tmp_path / "key").write_text("mounted\n")
    (tmp_path / "key").chmod(0o444)
    assert read_secret(tmp_path / "key") == "mounted"


def test_an_empty_file_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / "key").touch(mode=0o600)
    with pytest.raises(ConfigurationInvalid, match="is empty"):
        read_secret(tmp_path / "key")


def test_a_setting_may_name_a_file_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").touch(mode=0o600)
    (tmp_path / "key").write_text("from the file\n")
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path / "key"))
    assert secret("SOME_KEY") == "from the file"
    monkeypatch.setenv("SOME_KEY", "from the environment")
    assert secret("SOME_KEY") == "from the environment"


def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(ConfigurationInvalid, match=r"missing.*No such file"):
        secret("SOME_KEY")
