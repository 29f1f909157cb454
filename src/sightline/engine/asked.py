"""A client's request as the server understood it, before anything was decided about it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client sent. `body` is after content decoding; `coded` the bytes as they came where a coding was undone.

    `headers` are as they came, in order, in latin-1; `path` and `query` as the client wrote them, behind any prefix.
    `received` is the clock's elapsed time when its head came; `origin` the exchange that this one replays; `tokens` how
    large it is thought to be, where whoever asks has thought about it.
    """

    dialect: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    path: str
    query: str = ""
    model: str = ""
    is_stream: bool = False
    coded: bytes | None = None
    coding: str = ""
    provider: str = ""
    session: str = ""
    strict: bool = False
    counts: bool = False
    received: float = 0.0
    origin: str = ""
    tokens: int = 0

    def named(self) -> dict[str, str]:
        """The headers by name in lower case; of several with one name the first."""
        return {name.lower(): value for name, value in reversed(self.headers)}
