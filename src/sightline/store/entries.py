"""What is recorded, piece by piece: facts of exchanges, and the bodies that they name by hash."""

from typing import TypeAlias

import msgspec

from sightline.model.exchange import Fact


class FactEntry(msgspec.Struct, frozen=True, tag_field="type", tag="fact"):
    """Fact number `n` of an exchange, from 0, and the time of day at which it became true."""

    exchange: str
    n: int
    at: float
    fact: Fact


class BodyEntry(msgspec.Struct, frozen=True, tag_field="type", tag="body"):
    """A body. `near` names others that it is likely to resemble, such as those of its session, so that what they share
    need not be stored again."""

    sha256: str
    data: bytes
    near: str = ""


Entry: TypeAlias = FactEntry | BodyEntry
