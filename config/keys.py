"""The source of the master keys: the environment, or two files beside each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from arbor.errors import ConfigurationInvalid
from arbor.sealing import MasterKeys, parse_master_key
from config.environment import env, has_own_secrets, secret, secret_file, secret_folder
from config.secrets import SecretName, new_master_key, read_secret, write_unfinished

CURRENT, OTHER = "ARBOR_MASTER_KEY", "ARBOR_OTHER_MASTER_KEY"
#: The ending of the file with the other key, beside the file with the current one.
OTHER_ENDING = ".other"


@dataclass(frozen=True, kw_only=True)
class KeySource:
    """The source of the master keys of a process. Files are read at each use, so a running process uses a new key at once."""

    #: The file with the current key; None: both keys are in the environment, or this process does not use them.
    file: Path | None = None
    current_text: str = field(default="", repr=False)
    #: The other key from the environment, which takes precedence over the key in a file.
    other_text: str = field(default="", repr=False)

    @classmethod
    def of_environment(cls) -> KeySource:
        """Return the source that the environment names: a key, a file, or the secrets folder."""
        other = secret("ARBOR_OTHER_MASTER_KEY")
        text: str = env.str("ARBOR_MASTER_KEY", default="")
        if text:
            return cls(current_text=text, other_text=other)
        file = secret_file(CURRENT)
        if file is not None:
            # A file that the environment names must exist; the secrets folder gets its file at the first start.
            read_secret(file)
        elif not has_own_secrets():
            file = secret_folder().file(SecretName.MASTER_KEY)
        return cls(file=file, other_text=other)

    @property
    def other_file(self) -> Path:
        """The file with the other key."""
        file = self._rotatable_file()
        return file.with_name(file.name + OTHER_ENDING)

    def read(self) -> MasterKeys | None:
        """Return the keys; None before the first start, and without keys. Raises ConfigurationInvalid for a text that is no key."""
        # The current key first: a rotation stores the other file before it replaces this one.
        current = self.current_text or (_read_if_there(self.file) if self.file is not None else "")
        if not current:
            return None
        other = self.other_text
        if not other and self.file is not None:
            other = _read_if_there(self.other_file)
        return MasterKeys(
            current=parse_master_key(current, name=CURRENT),
            other=parse_master_key(other, name=OTHER) if other else None,
        )

    def begin_rotation(self) -> MasterKeys:
        """Generate a new current key, and retain the present one as the other; with two keys open, change nothing.

        Raises ConfigurationInvalid where the keys are in the environment or in a folder that cannot be written.
        """
        file = self._rotatable_file()
        remedy = (
            f"put the new key into {file} and the present one into {file.name}{OTHER_ENDING} beside it, for all parts, and"
            " run `arbor keys rotate` again"
        )
        with _locked(file.parent, remedy=remedy):
            keys = self._read_existing()
            if keys.other_id is not None:
                return keys
            # Each file is replaced atomically; interrupted between the two, both contain the same key.
            write_unfinished(self.other_file, read_secret(file)).replace(self.other_file)
            write_unfinished(file, new_master_key()).replace(file)
            return self._read_existing()

    def drop_other(self) -> None:
        """Delete the file with the other key. Raises ConfigurationInvalid where the key is in the environment."""
        if self.other_text:
            raise ConfigurationInvalid(
                f"{OTHER} is no longer needed, and in the environment: remove it there, and restart the parts"
            )
        file = self._rotatable_file()
        with _locked(file.parent, remedy=f"remove {self.other_file} for all parts"):
            self.other_file.unlink(missing_ok=True)

    def _read_existing(self) -> MasterKeys:
        keys = self.read()
        if keys is None:
            raise ConfigurationInvalid(
                "there is no master key to rotate; `arbor up` makes one at the first start"
            )
        return keys

    def _rotatable_file(self) -> Path:
        if self.file is None:
            raise ConfigurationInvalid(
                f"{CURRENT} is in the environment: make a new key (openssl rand -base64 32), give all parts the new one as"
                f" {CURRENT} and the present one as {OTHER}, and run `arbor keys rotate` again (docs/how-to/operate.md)"
            )
        return self.file


def _read_if_there(file: Path) -> str:
    """Return the secret in a file; empty if there is none, also if it is removed at this moment."""
    try:
        return read_secret(file)
    except ConfigurationInvalid:
        if file.exists():
            raise
        return ""


@contextmanager
def _locked(folder: Path, *, remedy: str) -> Iterator[None]:
    """Lock a folder of keys, so that two commands never generate two keys."""
    if not os.access(folder, os.W_OK):
        raise ConfigurationInvalid(f"{folder} cannot be written: {remedy}")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        # After a power cut no row may be sealed under a key whose file is not on the disk.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
