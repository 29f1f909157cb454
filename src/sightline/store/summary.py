"""One line for an exchange: what lists show and filters ask for, folded from its facts."""

import msgspec

from sightline.model.exchange import State


class Summary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`at` is when it was received; `status` what the client got; token counts are the provider's own. `previous` is
    the exchange whose conversation this one continues; `is_side` marks a client's errand (a title, a router)."""

    id: str
    at: float
    state: State = "received"
    dialect: str = ""
    provider: str = ""
    model: str = ""
    session: str = ""
    client: str = ""
    path: str = ""
    status: int = 0
    finish: str = ""
    fault: str = ""
    message: str = ""
    is_stream: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    losses: int = 0
    attempts: int = 0
    tools: tuple[str, ...] = ()
    first_byte: float | None = None
    elapsed: float | None = None
    origin: str = ""
    previous: str = ""
    is_side: bool = False
    title: str = ""
