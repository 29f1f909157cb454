"""Reading a terminal, also on a loop that cannot watch it."""

import asyncio
import os
import pty

import pytest

from sightline.platform.terminal import TerminalReader, has_screen, keys_at_once


@pytest.mark.parametrize("can_watch", [True, False], ids=["watched", "as on Windows"])
async def test_what_is_typed_is_read_and_nothing_is_lost_to_a_caller_that_has_gone(can_watch: bool) -> None:
    ours, theirs = pty.openpty()
    reader = TerminalReader(theirs, can_watch=can_watch)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await reader.read()
        os.write(ours, b"yes\n")
        assert await reader.read() == b"yes\n"
        os.write(ours, b"\x04")
        assert await reader.read() == b""
    finally:
        os.close(ours)
        os.close(theirs)


def test_keys_come_one_by_one_from_a_terminal_only() -> None:
    ours, theirs = pty.openpty()
    end, other = os.pipe()
    try:
        with keys_at_once(theirs) as is_possible:
            assert is_possible
            os.write(ours, b"y")
            assert os.read(theirs, 10) == b"y"
        with keys_at_once(end) as is_possible:
            assert not is_possible
    finally:
        for each in (ours, theirs, end, other):
            os.close(each)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, False),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
        ("win32", {}, True),
    ],
)
def test_a_browser_has_a_screen(platform: str, environment: dict[str, str], expected: bool) -> None:
    assert has_screen(environment, platform) is expected
