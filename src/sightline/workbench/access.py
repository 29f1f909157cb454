"""Access by the token: in a header, or in the cookie that the printed link sets."""

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import parse_qs

from sightline.web.asgi import Headers, header

_A_MONTH = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Access:
    """The token and the port. Browsers share cookies between ports, so the cookie's name has the port in it."""

    token: str
    port: int

    def is_granted(self, headers: Headers) -> bool:
        """Whether the request has the token."""
        scheme, _, shown = header(headers, b"authorization").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(shown.strip()):
            return True
        return any(self._is_token(value) for value in self._cookies(headers))

    def is_in(self, query: str) -> bool:
        """Whether the query of the printed link has the token."""
        return any(self._is_token(value) for value in parse_qs(query).get("token", ()))

    def proof(self, query: str) -> str:
        """The response to the challenge in a query, by which another program of the user recognises this server."""
        challenge = parse_qs(query).get("challenge", [""])[0]
        return proof_of(self.token, challenge) if challenge else ""

    @property
    def cookie(self) -> bytes:
        """The cookie: not readable by scripts, and not sent with requests of other sites."""
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
    """The response to a challenge, which proves knowledge of the token without sending it."""
    return hmac.new(token.encode(), f"sightline {challenge}".encode(), hashlib.sha256).hexdigest()
