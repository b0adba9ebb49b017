"""Which addresses may be connected to: public ones, and those of hosts that the user names."""

import ipaddress
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class RefusedAddress(Exception):
    """A host has no address that may be connected to."""


class AddressGuard:
    """Tells which addresses of a host may be connected to; any of those ``allowed``, as ``HOST`` or ``HOST:PORT``."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(one.lower() for one in allowed)

    def allows(self, host: str, port: int) -> bool:
        """Tell whether the user named the host."""
        bare = host.lower().strip("[]")
        names = {bare, f"{bare}:{port}", f"[{bare}]", f"[{bare}]:{port}"}
        return not self._allowed.isdisjoint(names)

    def choose(self, host: str, port: int, addresses: Iterable[str]) -> list[str]:
        """Return the addresses to connect to; raises `RefusedAddress` if there is none."""
        known = list(dict.fromkeys(addresses))
        chosen = known if self.allows(host, port) else [address for address in known if is_public(address)]
        if not chosen:
            raise RefusedAddress(f"{host} is at {', '.join(known) or 'no address'}, which is not public")
        return chosen


def is_public(address: str) -> bool:
    """Tell whether an address is one of the public Internet; those that embed another one count as that, too."""
    parsed = ipaddress.ip_address(address.split("%")[0])
    return all(one.is_global and not one.is_multicast for one in (parsed, *_embedded(parsed)))


def _embedded(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        found.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]


def addresses_of(found: Iterable[tuple[object, ...]]) -> list[str]:
    """Return the addresses in an answer of ``getaddrinfo``."""
    return [
        str(one[4][0]) for one in found if isinstance(one[4], tuple) and one[0] in (socket.AF_INET, socket.AF_INET6)
    ]
