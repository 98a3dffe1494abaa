"""Web addresses that agents may visit: public ones, of allowed domains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

from arbor.errors import ConfigurationInvalid

#: Addresses that a gateway translates to IPv4 (RFC 6052); the last 32 bits are the IPv4 address.
_NAT64 = IPv6Network("64:ff9b::/96")
#: The only IPv6 addresses assigned to the public network (RFC 4291, 2.4; IANA's registry of IPv6 address space). Outside of
#: it are site-local addresses, `fec0::/10`, and `::/96`, formerly IPv4 addresses.
_PUBLIC_IPV6 = IPv6Network("2000::/3")
#: Reserved networks that Python's registry lacks or calls global: the host of a virtual machine in Azure, seen from the machine;
#: documentation (RFC 9637); the relays of 6to4 (RFC 7526); ORCHIDv2 and drone identifiers, no addresses of hosts.
_RESERVED = tuple(
    ip_network(text)
    for text in ("168.63.129.16/32", "3fff::/20", "192.88.99.0/24", "2001:20::/28", "2001:30::/28")
)
EVERYWHERE = "*"


def is_public(address: str) -> bool:
    """Return whether an IP address, as text, is public; False for a text that is not an address.

    An IPv6 address that contains an IPv4 address is public only if the latter is, so that `::ffff:127.0.0.1` does not pass.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_global(part) for part in (parsed, *_embedded_ipv4(parsed)))


def is_address(text: str) -> bool:
    """Return whether a text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _embedded_ipv4(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    if isinstance(address, IPv4Address):
        return []
    parsed = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        parsed.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [part for part in parsed if part is not None]


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    if any(address in network for network in _RESERVED):
        return False
    # An embedded IPv4 address decides by itself; the caller checks it too.
    if isinstance(address, IPv6Address):
        return bool(_embedded_ipv4(address)) or (address in _PUBLIC_IPV6 and address.is_global)
    return address.is_global and not address.is_multicast


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowList:
    """The allowed domains, each with its subdomains; without a domain, no page may be read."""

    domains: frozenset[str] = frozenset()
    everywhere: bool = False

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Parse a setting: `*`, or domains such as `example.org`. Raises ConfigurationInvalid for anything else."""
        cleaned = {entry.strip().lower().rstrip(".") for entry in entries if entry.strip()}
        for entry in cleaned - {EVERYWHERE}:
            if not entry.isascii() or not all(part.replace("-", "").isalnum() for part in entry.split(".")):
                raise ConfigurationInvalid(
                    "ARBOR_WEB_ALLOW: an allowed domain is like example.org, in ASCII (xn--…), without scheme, port or path, got"
                    f" {entry!r}"
                )
        return cls(domains=frozenset(cleaned - {EVERYWHERE}), everywhere=EVERYWHERE in cleaned)

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.domains)

    def permits(self, host: str) -> bool:
        """Return whether a page of this host, in ASCII, may be read."""
        if self.everywhere:
            return True
        labels = host.lower().rstrip(".").split(".")
        return any(".".join(labels[start:]) in self.domains for start in range(len(labels)))
