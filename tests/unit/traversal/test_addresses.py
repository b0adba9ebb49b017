"""Which addresses may be connected to."""

import pytest

from evergraph.traversal.addresses import AddressGuard, RefusedAddress, is_public
from evergraph.traversal.iris import document_url, joined, origin

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946"]
PRIVATE = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(address)
    assert AddressGuard().choose("example.org", 80, [address]) == [address]


@pytest.mark.parametrize("address", PRIVATE)
def test_private(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(RefusedAddress, match="not public"):
        AddressGuard(["other.example"]).choose("example.org", 80, [address])
    assert AddressGuard(["Example.org"]).choose("example.org", 80, [address]) == [address]
    assert AddressGuard(["example.org:80"]).choose("example.org", 80, [address]) == [address]
    with pytest.raises(RefusedAddress):
        AddressGuard(["example.org:8080"]).choose("example.org", 80, [address])


def test_of_several_addresses_the_public_ones_are_taken() -> None:
    assert AddressGuard().choose("example.org", 80, ["10.0.0.1", "8.8.8.8"]) == ["8.8.8.8"]
    assert AddressGuard(["[::1]:80"]).choose("::1", 80, ["::1"]) == ["::1"]


@pytest.mark.parametrize(
    ("iri", "url"),
    [
        ("http://example.org/a#b", "http://example.org/a"),
        ("HTTP://EXAMPLE.org", "http://example.org/"),
        ("http://example.org:80/a", "http://example.org/a"),
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org/ä", "http://example.org/%C3%A4"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("urn:a", None),
        ("mailto:a@example.org", None),
        ("file:///etc/passwd", None),
        ("http://", None),
        ("http:///x", None),
        ("http://user:secret@example.org/", None),
        ("http://example.org:99999999/", None),
        ("http://exa mple.org/", None),
        ("http://example.org/" + "a" * 9_000, None),
    ],
)
def test_addresses_of_iris(iri: str, url: str | None) -> None:
    assert document_url(iri) == url


def test_redirects_are_relative() -> None:
    assert joined("http://example.org/a/b", "../c#d") == "http://example.org/c"
    assert joined("http://example.org/a", "//other.org/") == "http://other.org/"
    assert joined("http://example.org/a", "javascript:alert(1)") is None
    assert origin("http://example.org:8000/a") == "http://example.org:8000"
