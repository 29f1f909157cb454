"""The recorder of a data folder: `python -m sightline.app.recorder`, which a server starts and keeps running.

It reads its parameters from the first line of its standard input, and exits when the input ends. It holds the
recorder's lock and reads the journals twice a second, or at once when a reader wakes it. It runs at low priority: no
client waits for it.
"""

import gc
import logging
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, time

import msgspec

from sightline.catalog.catalog import Catalog
from sightline.errors import Fault
from sightline.platform.processes import ENDING, MemoryTrimmer, ignore_signals, lower_priority, yield_core
from sightline.store.importer import Fsync, Importer, Sink, open_wake
from sightline.store.summary import price_list

_LOG = logging.getLogger(__name__)
_LOOK = 0.5
"""Seconds between two reads of the journals. Large batches change each page of the database once. Readers do not wait
this long: they wake the recorder."""
_DEAD = 1.0
"""Seconds between two checks for processes that have died."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0
_WORTH_RESTING = 0.005
"""Seconds of work after which there is memory to free: 64 streams take 16 ms and leave 5 MB."""
_TRY, _HANDOVER = 0.05, 2.0
"""Seconds between two attempts to get the lock, and the time that an ending server's recorder has to release it."""


class RecorderParameters(msgspec.Struct, frozen=True):
    """The data folder, the URL of a database that replaces the one in the folder, the folder's name there, the
    catalogue with the prices, and the plug-ins, whose dialects may be on record."""

    folder: str
    catalog: Catalog
    url: str = ""
    replica: str = ""
    fsync: Fsync = "never"
    plugins: tuple[str, ...] = ()
    plugin_folder: str = ""

    def line(self) -> bytes:
        """The parameters as the first line of the recorder's input."""
        return msgspec.json.encode(self) + b"\n"


def _sink_opener(parameters: RecorderParameters, give_way: Callable[[], None]) -> Callable[[], Sink]:
    prices = price_list(parameters.catalog)
    folder = Path(parameters.folder)

    def open_sink() -> Sink:
        if not parameters.url:
            from sightline.store.sqlite_database import open_database
            from sightline.store.sqlite_sink import SqliteSink

            return SqliteSink(open_database(folder, is_forced=parameters.fsync != "never"), prices, give_way)
        from sightline.store.postgres_connection import address_of
        from sightline.store.postgres_sink import PostgresSink

        return PostgresSink(address_of(parameters.url), replica=parameters.replica, prices=prices, now=time)

    return open_sink


def main() -> None:
    """Record until the input ends."""
    ignore_signals(*ENDING)  # the server ends the recorder by closing its input
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    parameters = msgspec.json.decode(sys.stdin.buffer.readline(), type=RecorderParameters)
    if parameters.plugins:
        from sightline.plugins.loading import load_plugins

        load_plugins(parameters.plugins, Path(parameters.plugin_folder))
    lower_priority()
    # The many objects of a batch live as long as the batch: the garbage collector would scan them in vain.
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    journal = Path(parameters.folder) / "journal"

    def give_way() -> None:
        if not importer.is_behind:
            yield_core()

    importer = Importer(journal, _sink_opener(parameters, give_way), time)
    began, is_ready = monotonic(), False
    while not importer.acquire():
        if not is_ready and monotonic() - began > _HANDOVER:
            _report_ready()  # the recorder of another server works for both
            is_ready = True
        if select.select([0], [], [], _TRY)[0] and not os.read(0, 1):
            return
    _run(importer, open_wake(journal), is_ready=is_ready)
    importer.close()


def _report_ready() -> None:
    """Tell the server that the journals of earlier processes have been read."""
    with suppress(OSError):  # the server may have ended
        os.write(1, b"ready\n")


def _run(importer: Importer, pipe: int, *, is_ready: bool) -> None:
    looked = wait = 0.0
    is_over = False
    freed = MemoryTrimmer(_WORTH_RESTING)
    while not is_over:
        try:
            if monotonic() - looked > _DEAD:
                importer.end_interrupted()
                looked = monotonic()
                if freed.is_due(looked):
                    importer.rest()
                    freed.give_back()
            else:
                importer.catch_up()
            wait = 0.0
        except Fault as fault:
            if not wait:
                _LOG.warning("records wait in the journal: %s", fault)
            wait = min(2 * wait, _LONGEST_WAIT) or _FIRST_WAIT
        if not is_ready:
            _report_ready()
            is_ready = True
        ready, _, _ = select.select([0, pipe], [], [], wait or _LOOK)
        if pipe in ready:
            os.read(pipe, 1 << 16)
        is_over = 0 in ready and not os.read(0, 1)
    try:
        importer.end_interrupted()
    except Fault as fault:
        _LOG.warning("what was recorded stays in the journal: %s", fault)


if __name__ == "__main__":
    main()
