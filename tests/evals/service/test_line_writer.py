import asyncio
from collections.abc import Sequence

import pytest

from sightline.errors import Code, Fault
from sightline.evals.service.eval_log import LineWriter


class Disk:
    """Writes when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.may_write = asyncio.Event()
        self.writes = asyncio.Event()
        self.fault: Fault | None = None

    async def __call__(self, lines: Sequence[bytes]) -> None:
        self.writes.set()
        await self.may_write.wait()
        if self.fault is not None:
            raise self.fault
        self.batches.append(list(lines))


async def test_what_comes_while_something_is_written_goes_together() -> None:
    disk = Disk()
    writer, heard = LineWriter(disk), list[bytes]()
    writer.add(b"1", lambda: heard.append(b"1"))
    await disk.writes.wait()
    for line in (b"2", b"3"):
        writer.add(line, lambda line=line: heard.append(line))  # type: ignore[misc]
    assert heard == []
    disk.may_write.set()
    await writer.flush()
    assert (disk.batches, heard) == ([[b"1"], [b"2", b"3"]], [b"1", b"2", b"3"])
    await LineWriter(disk).flush()


async def test_flush_cancelled_during_a_write_ends_after_the_write() -> None:
    disk = Disk()
    writer = LineWriter(disk)
    writer.add(b"1")
    task = asyncio.ensure_future(writer.flush())
    await disk.writes.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    disk.may_write.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert disk.batches == [[b"1"]]


async def test_write_failure_is_raised_to_all_later_callers() -> None:
    disk = Disk()
    disk.fault = Fault(Code.CONFIG, "the disk is full")
    disk.may_write.set()
    writer = LineWriter(disk)
    writer.add(b"1")
    for _ in range(2):
        with pytest.raises(Fault, match="full"):
            await writer.flush()
    with pytest.raises(Fault, match="full"):
        writer.add(b"2")
    with pytest.raises(Fault, match="full"):
        await writer.lasting(b"3")


async def test_listener_failure_is_raised_to_waiting_writers() -> None:
    def fails() -> None:
        raise RuntimeError("the listener has a mistake in it")

    disk = Disk()
    disk.may_write.set()
    writer = LineWriter(disk)
    writer.add(b"1", fails)
    with pytest.raises(RuntimeError, match="a mistake in it"):
        await writer.lasting(b"2")
    with pytest.raises(RuntimeError, match="a mistake in it"):
        await writer.flush()


async def test_one_line_can_be_waited_for_and_others_go_with_it() -> None:
    disk = Disk()
    writer, heard = LineWriter(disk), list[bytes]()
    first = asyncio.ensure_future(writer.lasting(b"1", lambda: heard.append(b"1")))
    await disk.writes.wait()
    others = [asyncio.ensure_future(writer.lasting(line)) for line in (b"2", b"3")]
    await asyncio.sleep(0)
    others[0].cancel()
    assert not first.done()
    disk.may_write.set()
    await asyncio.wait({first, *others})
    assert (disk.batches, heard, others[0].cancelled()) == ([[b"1"], [b"2", b"3"]], [b"1"], True)
    disk.fault = Fault(Code.CONFIG, "the disk is full")
    with pytest.raises(Fault, match="full"):
        await writer.lasting(b"4")
