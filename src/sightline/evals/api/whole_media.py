"""Pictures and files of results with their bytes: results name them by a hash, the record or the folder has them."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from sightline.chat.core.pair import ChatAnswer
from sightline.chat.service.blocks import Media, media_of
from sightline.errors import Fault
from sightline.evals.core.stored_media import SCHEME
from sightline.exchange.recording.exchange_record import find_exchange, load_exchange
from sightline.model.message import Message
from sightline.model.parts import Inline, Link
from sightline.store.store import Store


class WholeMedia:
    """`read` gives the file at a path below the suites' folder, None where there is none."""

    def __init__(self, store: Store, read: Callable[[str], bytes | None], now: Callable[[], float]) -> None:
        self._store = store
        self._read = read
        self._now = now

    async def of(self, part: Media, exchanges: Sequence[str], files: Sequence[str]) -> Media:
        """The part with its bytes, from one of these exchanges or files; as it is where none of them has them."""
        source = part.source
        if not isinstance(source, Link) or not source.url.startswith(SCHEME):
            return part
        digest = source.url.removeprefix(SCHEME)
        for each in reversed(exchanges):
            for other in await self._media_of(each):
                if isinstance(other.source, Inline) and _digest(other.source.data) == digest:
                    return other
        for coded in self._base64_of(files):
            if _digest(coded) == digest:
                return msgspec.structs.replace(part, source=Inline(source.media_type or "", coded))
        return part

    async def _media_of(self, exchange: str) -> tuple[Media, ...]:
        """All that was sent and answered in an exchange; nothing where the record has it no more."""
        try:
            found = await load_exchange(self._store, await find_exchange(self._store, exchange, now=self._now()))
            said = (Message("assistant", found.reply().choice.parts),) if found.frames else ()
            return media_of(ChatAnswer(messages=(*found.request().messages, *said)))
        except Fault:
            return ()

    def _base64_of(self, files: Sequence[str]) -> Iterator[str]:
        for path in files:
            data = self._read(path)
            if data is not None:
                yield base64.b64encode(data).decode("ascii")


def _digest(coded: str) -> str:
    return hashlib.sha256(coded.encode("ascii", "replace")).hexdigest()
