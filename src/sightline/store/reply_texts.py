"""What replies say, told by whoever has read them on their way, so that they need not be read a second time."""

from typing import Final

import msgspec

LONGEST: Final = 16 << 10
"""Letters of the words that are taken; longer ones are read when there is time for it."""
_MOST = 2048


class ReplyText(msgspec.Struct, frozen=True, gc=False):
    """The words of an exchange's reply, without secrets, and the id by which the reply calls itself."""

    exchange: str
    words: str
    reply_id: str = ""


class Overhearing:
    """Words that wait for the thread that stores the exchanges they belong to; told on one thread, taken on another."""

    def __init__(self) -> None:
        self._said: dict[str, ReplyText] = {}

    def tell(self, said: ReplyText) -> None:
        """Keep it until its exchange is stored."""
        if len(said.words) <= LONGEST:
            if len(self._said) >= _MOST:
                # Some of those that wait may belong to exchanges that never came; all can be read again.
                self._said.clear()
            self._said[said.exchange] = said

    def take(self, exchange: str) -> ReplyText | None:
        """What this exchange's reply says, once."""
        return self._said.pop(exchange, None)
