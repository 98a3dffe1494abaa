"""The keys of an agent: a chain of signing keys, each signed by the one before, and the keys that messages are sealed for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from arbor.agents.identity import KeyPair, PrivateKey, prefixed_bytes, public_id, sign, verify
from arbor.errors import IdentityRefused

#: The number of a chain's first key, whose hash is the agent's public id for life.
FIRST = 1
#: Chains whose signatures a process has verified, about 1 KB each.
_CHAINS_CACHED = 4096

# A label is part of what is signed: changing it makes every signature under it worthless.
_NEXT_KEY_LABEL = "arbor/next-key/v1"
_EXCHANGE_KEY_LABEL = "arbor/exchange-key/v1"


class KeyPurpose(StrEnum):
    """The use of an agent's key."""

    #: Signs requests and messages (Ed25519).
    SIGNING = "signing"
    #: Agrees on the keys of sealed messages (X25519).
    EXCHANGE = "exchange"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainKey:
    """A public key of an agent, 32 bytes, and the signature that ties it to the keys before."""

    #: From 1, by purpose.
    number: int
    public: bytes
    #: By the signing key before, or for an exchange key by a signing key of the chain; empty for the first signing key.
    signature: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyChain:
    """The signing keys of one agent of one tenant, in their order."""

    public_id: str
    tenant_id: str
    keys: tuple[ChainKey, ...]

    @property
    def current(self) -> ChainKey:
        """Return the key that signs now. Raises IdentityRefused for an agent without keys."""
        if not self.keys:
            raise IdentityRefused(f"{self.public_id} has no signing key")
        return self.keys[-1]

    def key(self, number: int) -> ChainKey | None:
        """Return the key of a number; None without one."""
        return next((key for key in self.keys if key.number == number), None)

    def verify(self) -> None:
        """Check that the first key is the agent's, and that each further one is signed by the key before.

        Raises IdentityRefused.
        """
        if fault := _chain_fault(self):
            raise IdentityRefused(fault)

    def verify_exchange(self, key: ChainKey) -> None:
        """Check that a signing key of this chain has signed an exchange key. Raises IdentityRefused."""
        if not _is_own_exchange_key(self, key):
            raise IdentityRefused(
                f"the exchange key {key.number} of {self.public_id} is not signed by a key of the agent"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class SigningKey:
    """The private key with which an agent or the System Authority signs, ready for use."""

    public_id: str
    #: The number of the key in the agent's chain.
    number: int
    #: The raw public key.
    public: bytes
    _key: Ed25519PrivateKey

    @classmethod
    def build(cls, private: PrivateKey, *, public_id: str, number: int) -> SigningKey:
        """Build the key from its raw bytes, which takes as long as a signature."""
        key = Ed25519PrivateKey.from_private_bytes(private.raw)
        return cls(public_id=public_id, number=number, public=key.public_key().public_bytes_raw(), _key=key)

    def __repr__(self) -> str:
        return f"SigningKey({self.public_id!r}, number={self.number})"

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of a message."""
        return self._key.sign(message)


def key_label(purpose: KeyPurpose, number: int) -> str:
    """Return the name that a key's sealed private half is bound to; empty for the first signing key."""
    return "" if (purpose, number) == (KeyPurpose.SIGNING, FIRST) else f"{purpose}/{number}"


def next_key(chain: KeyChain, public: bytes, *, private: PrivateKey) -> ChainKey:
    """Return a further key of the chain, signed with the private half of the current one."""
    number = chain.current.number + 1
    statement = _next_key_statement(chain, number, public)
    return ChainKey(number=number, public=public, signature=sign(private, statement))


def exchange_key(chain: KeyChain, public: bytes, *, number: int, private: PrivateKey) -> ChainKey:
    """Return an exchange key, signed with the private half of the chain's current key."""
    statement = _exchange_key_statement(chain, number, public)
    return ChainKey(number=number, public=public, signature=sign(private, statement))


def generate_exchange_pair() -> KeyPair:
    """Make a new X25519 key pair from the system's randomness."""
    key = X25519PrivateKey.generate()
    return KeyPair(
        public=key.public_key().public_bytes_raw(), private=PrivateKey(raw=key.private_bytes_raw())
    )


@lru_cache(maxsize=_CHAINS_CACHED)
def _chain_fault(chain: KeyChain) -> str:
    """Return the reason why a chain of keys is not valid; empty if it is."""
    agent = chain.public_id
    if not chain.keys:
        return f"{agent} has no signing key"
    if [key.number for key in chain.keys] != list(range(FIRST, FIRST + len(chain.keys))):
        return f"the chain of keys of {agent} has gaps: {[key.number for key in chain.keys]}"
    if public_id(chain.keys[0].public) != agent:
        return f"the first key of {agent} is another agent's: its hash is not the id"
    for before, key in pairwise(chain.keys):
        if not verify(before.public, _next_key_statement(chain, key.number, key.public), key.signature):
            return f"the key {key.number} of {agent} is not signed by the key before"
    return ""


@lru_cache(maxsize=_CHAINS_CACHED)
def _is_own_exchange_key(chain: KeyChain, key: ChainKey) -> bool:
    statement = _exchange_key_statement(chain, key.number, key.public)
    return any(verify(signing.public, statement, key.signature) for signing in reversed(chain.keys))


def _next_key_statement(chain: KeyChain, number: int, public: bytes) -> bytes:
    return prefixed_bytes(_NEXT_KEY_LABEL, chain.tenant_id, chain.public_id, number, public)


def _exchange_key_statement(chain: KeyChain, number: int, public: bytes) -> bytes:
    return prefixed_bytes(_EXCHANGE_KEY_LABEL, chain.tenant_id, chain.public_id, number, public)
