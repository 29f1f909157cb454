"""A request as rules look at it, when it is about to leave or when its reply has come."""

from functools import cached_property

from sightline.catalog.choose import ModelChoice
from sightline.exchange.client_request import ClientRequest
from sightline.filters.pattern import occurs
from sightline.filters.predicate import Value
from sightline.store.digest import Digest, digest_of


class RuleSubject:
    """What rules can ask about. The words of the request are read only if one asks for them.

    `tools` are the tools that the reply calls, once it is here.
    """

    def __init__(
        self,
        exchange: str,
        asked: ClientRequest,
        choice: ModelChoice,
        *,
        at: float,
        losses: int,
        tools: tuple[str, ...] = (),
    ) -> None:
        self._asked = asked
        self._values: dict[str, Value] = {
            "id": exchange,
            "model": asked.model,
            "provider": choice.provider_name,
            "dialect": asked.dialect,
            "session": asked.session,
            "client": asked.headers_by_name().get("user-agent", "").partition(" ")[0],
            "path": asked.path,
            "state": "received",
            "stream": asked.is_stream,
            "origin": asked.origin,
            "losses": float(losses),
            "at": at,
            "tool": tools,
        }

    def value(self, name: str) -> Value:
        """The value of a field."""
        return self._digest.is_side if name == "side" else self._values.get(name)

    def says(self, pattern: str) -> bool:
        """Whether the pattern occurs in the request."""
        digest = self._digest
        return any(occurs(pattern, text) for text in (digest.asked, *digest.system))

    @cached_property
    def _digest(self) -> Digest:
        return digest_of(self._asked.dialect, self._asked.body)
