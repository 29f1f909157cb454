"""The example: a small record that is part of the package, for users who have no traffic of their own yet.

The page shows it below `/example/`. It has its own folder and configuration and no environment, so that it cannot reach
the user's keys, and does not affect the user's record, costs, limits or learned estimates. `python -m tools.example`
writes the file.
"""

import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import zstandard

from sightline.app.configuration import default_configuration
from sightline.app.engine import open_configured_store
from sightline.app.machine import SystemClock, is_alive, process_name
from sightline.app.server import Parts, make_workbench, open_parts
from sightline.store.entries import BodyEntry, Entry, join_frames
from sightline.store.store import Store
from sightline.web.access import OriginGuard
from sightline.web.routes import Calls
from sightline.workbench.api import read_only
from sightline.workbench.exchanges import DocumentToOpen, document_request
from sightline.workbench.workbench import Access, Workbench

FILE: Final = Path(__file__).with_name("example.jsonl.zst")
_PREFIX: Final = "example-"
_OWNER: Final = "owner"
_LARGEST: Final = 16 << 20
_TIME: Final = re.compile(r'"at":(\d{10}(?:\.\d+)?)')
"""A time of day in a line of a log."""


class LogLine(msgspec.Struct, frozen=True, tag_field="type", tag="log"):
    """A line of a log beside the record: of a chat, a run or an eval."""

    name: str
    at: float
    data: str


ExampleEntry: TypeAlias = Entry | LogLine
"""A line of the file after the first one."""


class ExampleHeading(msgspec.Struct, frozen=True):
    """The first line. `places` are ids by the names under which the tour looks them up; `latest` is the time of the
    last entry. `files` are written next to the record; `held` is held when the example is opened."""

    places: dict[str, str]
    latest: float
    files: dict[str, str]
    held: DocumentToOpen


class ExampleShown(msgspec.Struct, frozen=True):
    """What the tour shows: the ids of exchanges, a session, a run and an eval, by what they are an example of."""

    places: dict[str, str]


@asynccontextmanager
async def open_example(folder: Path, access: Access, address: str, guard: OriginGuard) -> AsyncIterator[Workbench]:
    """The workbench of the example, in a new folder below `folder`, which is removed at the end."""
    heading, entries = read_example()
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        own = stack.enter_context(_temporary_folder(folder))
        for name, text in heading.files.items():
            path = own / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        loaded = default_configuration(own / "sightline.toml")
        record = await open_configured_store(loaded, own, "", clock)
        stack.push_async_callback(record.close)
        await _load(record, entries, clock.now() - heading.latest)
        places = dict(heading.places)
        calls: Calls = {"example": {"GET": read_only(lambda: ExampleShown(places))}}
        parts = partial(
            Parts,
            access=access,
            store=record,
            loaded=loaded,
            address=address,
            now=clock.now,
            further=calls,
        )
        served = await open_parts(
            loaded, own, record, stack, parts, at=("", access.port), guard=guard, workers=1, store=""
        )
        stack.push_async_callback(served.close, 0)
        stack.callback(served.hub.close)  # pages that follow it never end by themselves
        assert served.sending is not None
        places["held"] = await served.sending.resending.send(document_request(heading.held))
        yield make_workbench(served)


def read_example() -> tuple[ExampleHeading, list[ExampleEntry]]:
    """Read the file."""
    text = zstandard.ZstdDecompressor().decompress(FILE.read_bytes(), max_output_size=_LARGEST)
    first, *lines = text.split(b"\n")
    decoder: msgspec.json.Decoder[ExampleEntry] = msgspec.json.Decoder(ExampleEntry)
    return msgspec.json.decode(first, type=ExampleHeading), [decoder.decode(line) for line in lines]


async def _load(record: Store, entries: list[ExampleEntry], later: float) -> None:
    """Record all entries with their times shifted by `later` seconds, so that they seem to have just happened."""
    batch: list[Entry] = []
    logs: dict[str, list[LogLine]] = {}
    for entry in entries:
        if isinstance(entry, LogLine):
            logs.setdefault(entry.name, []).append(entry)
        elif isinstance(entry, BodyEntry):
            batch.append(entry)
        else:
            batch.append(msgspec.structs.replace(entry, at=entry.at + later))
    record.record(join_frames(batch))
    for name, lines in logs.items():
        for number, line in enumerate(lines):
            data = _TIME.sub(lambda found: f'"at":{float(found[1]) + later}', line.data)
            await record.logbook.append(name, number, [data.encode()], line.at + later)
    await record.settle()


@contextmanager
def _temporary_folder(above: Path) -> Iterator[Path]:
    """A new folder, which is removed at the end. Folders that killed processes have left are removed, too."""
    for left in above.glob(f"{_PREFIX}*"):
        owner = left / _OWNER
        if owner.is_file() and not is_alive(owner.read_text("utf-8")):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
    try:
        (made / _OWNER).write_text(process_name(), "utf-8")
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
