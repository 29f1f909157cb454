"""How long each part of an exchange may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; 0 is no limit.

    `connect` covers the name look-up, the proxy and TLS; `first_byte` runs from the written request to the first byte
    of the answer; `idle` is the longest silence after that.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0
