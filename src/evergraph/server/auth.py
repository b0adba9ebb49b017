"""OAuth client credentials (RFC 6749, section 4.4) in the form that SEPA's clients expect.

A client registers under an identity and gets an id and a secret; with these it gets tokens, which end after a while.
Tokens are signed (JWT, HS256) and need no storage. Of secrets only a hash is kept. Key and clients are in the folder of
the broker, if it has one, so that clients need not register again when it restarts.
"""

import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from evergraph.errors import StoreError
from evergraph.files import open_output
from evergraph.server.problems import INVALID_CLIENT, INVALID_GRANT, JSON, Problem

_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_MOST = 100_000
_LONGEST = 256


class Clients:
    """Who may use the broker, and what proves it."""

    def __init__(
        self,
        folder: Path | None,
        *,
        open_to_all: bool,
        identities: frozenset[str],
        seconds: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = folder / "clients.json" if folder else None
        self._open = open_to_all
        self._identities = identities
        self._seconds = seconds
        self._clock = clock
        self._key = _key(folder / "token.key") if folder else secrets.token_bytes(32)
        self._clients: dict[str, dict[str, str]] = _load(self._path) if self._path else {}
        self._taken = {one["identity"] for one in self._clients.values()}

    # --- registration and tokens

    def register(self, message: Any) -> dict[str, Any]:
        """Register a client; returns its credentials."""
        match message:
            case {"register": {"client_identity": str(identity), "grant_types": list(types)}}:
                pass
            case _:
                raise Problem(JSON, 'expected {"register":{"client_identity":…,"grant_types":[…]}}', 400)
        if "client_credentials" not in types:
            raise Problem("unsupported_grant_type", "only client_credentials are supported", 400)
        if not identity or len(identity) > _LONGEST:
            raise Problem(INVALID_CLIENT, f"a client_identity has 1 to {_LONGEST} characters", 400)
        if not self._open and identity not in self._identities:
            raise Problem(INVALID_CLIENT, f"{identity!r} may not register here", 401)
        if identity in self._taken:
            raise Problem(INVALID_CLIENT, f"{identity!r} is registered already", 401)
        if len(self._clients) >= _MOST:
            raise Problem(INVALID_CLIENT, "too many clients are registered", 429)
        client, secret = str(uuid4()), secrets.token_urlsafe(32)
        self._clients[client] = {"identity": identity, "secret": _hash(secret)}
        self._taken.add(identity)
        self._save()
        return {"credentials": {"client_id": client, "client_secret": secret, "signature": "HS256"}}

    def token(self, authorization: str) -> dict[str, Any]:
        """Give a token to a client that proves who it is by Basic authorisation."""
        client = self._basic(authorization)
        now = int(self._clock())
        text = _sign(
            {"sub": client, "iat": now, "exp": now + self._seconds, "jti": secrets.token_hex(8)},
            self._key,
        )
        token = {"access_token": text, "token_type": "bearer", "expires_in": self._seconds}
        return {"token": token, **token}

    def _basic(self, authorization: str) -> str:
        scheme, _, text = authorization.partition(" ")
        try:
            client, _, secret = base64.b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            client = secret = ""
        known = self._clients.get(client)
        right = hmac.compare_digest(_hash(secret), known["secret"] if known else "")
        if scheme.lower() != "basic" or known is None or not right:
            raise Problem(INVALID_CLIENT, "unknown client, or wrong secret", 401, {"WWW-Authenticate": "Basic"})
        return client

    def user(self, authorization: str) -> str:
        """Return the client that a token belongs to; the word Bearer before it may be missing."""
        text = authorization.strip()
        if text[:7].lower() == "bearer ":
            text = text[7:].strip()
        if not text:
            raise Problem(INVALID_CLIENT, "a token is needed: Authorization: Bearer …", 401, _CHALLENGE)
        members = _verified(text, self._key)
        if members is None or members.get("sub") not in self._clients:
            raise Problem(INVALID_GRANT, "the token is not valid", 401, _CHALLENGE)
        if members["exp"] <= self._clock():
            raise Problem(INVALID_GRANT, "the token has expired", 401, _CHALLENGE)
        return str(members["sub"])

    def _save(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open_output(self._path) as out:
                os.fchmod(out.fileno(), 0o600)
                out.write(json.dumps(self._clients, indent=1).encode())


def _hash(secret: str) -> str:
    """Hash a secret. It is 32 random bytes, so that nothing slow is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _load(path: Path) -> dict[str, dict[str, str]]:
    try:
        found: dict[str, dict[str, str]] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}", hint="restore it from a backup, or remove it") from error
    return found


def _key(path: Path) -> bytes:
    """Read the key of tokens; make one if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with open_output(path) as out:
                os.fchmod(out.fileno(), 0o600)
                out.write(secrets.token_bytes(32))
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", hint="mend its permissions") from error
    if len(key) < 32:
        raise StoreError(f"{path} is damaged", hint="remove it; clients then need new tokens")
    return key


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signature(text: str, key: bytes) -> str:
    return _encoded(hmac.new(key, text.encode(), hashlib.sha256).digest())


def _sign(members: dict[str, Any], key: bytes) -> str:
    head = _encoded(b'{"alg":"HS256","typ":"JWT"}')
    text = f"{head}.{_encoded(json.dumps(members).encode())}"
    return f"{text}.{_signature(text, key)}"


def _verified(token: str, key: bytes) -> dict[str, Any] | None:
    """Return what a token says, if it was signed with the key; the header, which could name another way, is ignored."""
    text, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_signature(text, key).encode(), signature.encode("utf-8", "replace")):
        return None
    _, _, payload = text.partition(".")
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found
