"""How much of a server is borne with: seconds, bytes and numbers beyond which it is answered without."""

import msgspec

MEGABYTE = 1_000_000


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one server gets.

    `start_s` is for its start, its greeting and its list together, `list_s` for a list that is read again, `call_s` for
    one call, `close_s` for leaving on its own. `spacing_s` is the least time between two readings of its list.
    `message` is the size of one message in bytes; the loop cuts an answer further down for the model.
    """

    start_s: float = 30.0
    list_s: float = 30.0
    call_s: float = 60.0
    close_s: float = 2.0
    notice_s: float = 5.0
    spacing_s: float = 1.0
    message: int = 16 * MEGABYTE
    pages: int = 100
    tools: int = 512
    schema: int = 100_000
    levels: int = 64
    description: int = 4_000
    questions: int = 32
    restarts: int = 3
    reopenings: int = 10
    reopenings_s: float = 10.0


USUAL = Bounds()
