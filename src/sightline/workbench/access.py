"""Who may see the record: whoever knows the token, by a header, or by the cookie that the printed link leaves."""

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import parse_qs

from sightline.web.asgi import Headers, header

_A_MONTH = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Access:
    """The token, and the port: browsers do not part cookies by port, so that its name does."""

    token: str
    port: int

    def is_granted(self, headers: Headers) -> bool:
        """Whether the request shows the token."""
        scheme, _, shown = header(headers, b"authorization").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(shown.strip()):
            return True
        return any(self._is_token(value) for value in self._cookies(headers))

    def is_in(self, query: str) -> bool:
        """Whether the query of the printed link holds the token."""
        return any(self._is_token(value) for value in parse_qs(query).get("token", ()))

    def proof(self, query: str) -> str:
        """The answer to the challenge in a query, by which a program of the same person knows this server."""
        challenge = parse_qs(query).get("challenge", [""])[0]
        return proof_of(self.token, challenge) if challenge else ""

    @property
    def cookie(self) -> bytes:
        """What keeps a browser known: out of reach for scripts, and never sent along from another site."""
        return f"{self._name}={self.token}; Path=/; Max-Age={_A_MONTH}; HttpOnly; SameSite=Strict".encode()

    @property
    def _name(self) -> str:
        return f"sightline_{self.port}"

    def _cookies(self, headers: Headers) -> list[str]:
        pairs = (
            pair.strip().partition("=")
            for name, value in headers
            if name == b"cookie"
            for pair in value.decode("latin-1").split(";")
        )
        return [value for name, _, value in pairs if name == self._name]

    def _is_token(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), self.token.encode())


def proof_of(token: str, challenge: str) -> str:
    """What only who knows the token can say to a challenge; the token itself is not told."""
    return hmac.new(token.encode(), f"sightline {challenge}".encode(), hashlib.sha256).hexdigest()
