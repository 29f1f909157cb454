import asyncio
from collections.abc import Sequence

import pytest

from sightline.agent.service.toolsets import Toolsets
from sightline.agent.tools.opening import Opened
from sightline.errors import Code, Fault
from tests.running_stage import FakeTools


class Workshop:
    """Opens toolsets, and can be told that one cannot be."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, ...]] = []
        self.tools: list[FakeTools] = []
        self.trouble: Fault | None = None

    async def open(self, names: Sequence[str]) -> Opened:
        await asyncio.sleep(0)
        if self.trouble is not None:
            raise self.trouble
        self.opened.append(tuple(names))
        self.tools.append(FakeTools())
        return Opened(self.tools[-1], (), None)


def test_tools_are_opened_once_and_closed_at_the_end() -> None:
    async def story() -> None:
        shop = Workshop()
        toolsets = Toolsets(("files", "web"), shop.open)
        first, again = await asyncio.gather(
            toolsets.open_toolsets(["web", "files"]), toolsets.open_toolsets(("files", "web"))
        )
        other = await toolsets.open_toolsets(["web"])
        assert (first is again, first is other, shop.opened) == (True, False, [("files", "web"), ("web",)])
        await toolsets.close()
        assert [tools.is_closed for tools in shop.tools] == [True, True]
        await toolsets.close()

    asyncio.run(story())


def test_only_configured_tools_can_be_named() -> None:
    async def story() -> None:
        with pytest.raises(Fault, match=r"no tools named /etc/passwd, x") as caught:
            await Toolsets(("files",), Workshop().open).open_toolsets(["x", "files", "/etc/passwd"])
        assert (caught.value.code, caught.value.hint) == (Code.CONFIG, "Configured are: files.")
        with pytest.raises(Fault) as none:
            await Toolsets((), Workshop().open).open_toolsets(["x"])
        assert "[tools.NAME]" in none.value.hint

    asyncio.run(story())


def test_what_cannot_be_opened_is_tried_again_the_next_time() -> None:
    async def story() -> None:
        shop = Workshop()
        toolsets = Toolsets(("files",), shop.open)
        shop.trouble = Fault(Code.CONFIG, "no such file", hint="Check it.")
        with pytest.raises(Fault, match="no such file"):
            await toolsets.open_toolsets(["files"])
        shop.trouble = None
        assert (await toolsets.open_toolsets(["files"])).definitions
        await toolsets.close()

    asyncio.run(story())
