"""An archive is a record as lines of JSON, for moving it elsewhere: a heading, then one line for each entry.

Bytes are in base64. Loading an archive into a store that already has some of its entries adds the missing ones and
changes nothing else.
"""

from collections.abc import AsyncIterator, Iterable, Iterator

import msgspec

from sightline.errors import Code, Fault
from sightline.store.entries import BodyEntry, Entry, join_frames
from sightline.store.store import Store

VERSION = 1
_MAX_BATCH_BYTES = 4 << 20


class Heading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line. A newer `version` may contain entries that an older Sightline does not know."""

    sightline: str
    version: int


_HEADING = msgspec.json.Decoder(Heading)
_ENTRY: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


async def write_archive(entries: AsyncIterator[Entry]) -> AsyncIterator[bytes]:
    """The lines of an archive, each with its line ending."""
    yield msgspec.json.encode(Heading("record", VERSION)) + b"\n"
    async for entry in entries:
        yield msgspec.json.encode(entry) + b"\n"


def read(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of an archive. Raises a Fault if it is empty, of another kind or a newer version, or has an invalid
    line."""
    numbered = ((number, line.strip()) for number, line in enumerate(lines, 1))
    lines_left = ((number, line) for number, line in numbered if line)
    number, first = next(lines_left, (0, b""))
    if not first:
        raise Fault(Code.USAGE, "the archive is empty", hint="Use a file that Sightline exported, whole.")
    _check_heading(number, first)
    for number, line in lines_left:
        try:
            yield _ENTRY.decode(line)
        except msgspec.DecodeError as error:
            raise _unreadable(number, str(error)) from None


def load(store: Store, lines: Iterable[bytes]) -> int:
    """Record the entries of an archive; returns how many there were.

    Bodies are recorded together with the fact that follows them, so that there is never a body that no fact names.
    """
    count = size = 0
    batch: list[Entry] = []
    for entry in read(lines):
        batch.append(entry)
        count += 1
        size += len(entry.data) if isinstance(entry, BodyEntry) else 0
        if not isinstance(entry, BodyEntry) and (size >= _MAX_BATCH_BYTES or len(batch) >= 256):
            store.record(join_frames(batch))
            batch, size = [], 0
    if batch:
        store.record(join_frames(batch))
    return count


def _check_heading(number: int, line: bytes) -> None:
    try:
        heading = _HEADING.decode(line)
    except msgspec.DecodeError as error:
        raise _unreadable(number, str(error)) from None
    if heading.sightline != "record" or heading.version > VERSION:
        message = f"the archive is of kind {heading.sightline!r} and version {heading.version}"
        raise Fault(Code.USAGE, message, hint=f"This Sightline reads records up to version {VERSION}.")


def _unreadable(number: int, why: str) -> Fault:
    hint = "Use a file that Sightline exported, whole."
    return Fault(Code.USAGE, f"line {number} of the archive is no entry: {why}", hint=hint)
