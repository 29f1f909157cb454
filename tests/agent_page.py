"""A chat with tools in a real browser: a scripted provider that calls them, and a person who decides."""

import json
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, expect

from sightline.model.parts import ToolCall
from sightline.model.reply import Reply
from tests.browser import WIDE, browsing, looking
from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.chat_page import ChatPage, opened
from tests.gateway_server import Served
from tests.loop_stage import calls, says
from tests.running_stage import plays

TOOLS = '''
from pathlib import Path

HERE = Path(__file__).parent


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def write_note(path: str, text: str) -> str:
    """Write a note."""
    return f"{path} has {len(text)} letters"


def wait(name: str) -> str:
    """Wait until somebody comes."""
    with open(HERE / "waits", "a") as file:
        file.write(name + "\\\\n")
    (HERE / "began").write_text(name)
    (HERE / "gate").read_text()
    return f"{name} has waited"
'''
CONFIG = """
[ask]
model = "acme/large"
[tools.sums]
python = "sums.py"
allow = ["wait"]
"""


def equipped(folder: Path) -> None:
    """The tools, the gate that one of them waits at, and the bell that it rings there."""
    (folder / "sums.py").write_text(TOOLS.replace("\\\\", "\\"))
    os.mkfifo(folder / "gate")
    os.mkfifo(folder / "began")


@dataclass(frozen=True)
class AgentDesk:
    """A chat whose every topic has the tools `sums`."""

    chat: ChatDesk
    browser: Browser
    folder: Path

    @property
    def server(self) -> Served:
        return self.chat.server

    def says(self, *replies: Reply) -> None:
        """What the model replies from now on, one after the other."""
        self.chat.upstream.script = [plays(each) for each in replies]
        self.chat.upstream._played = 0

    @property
    def sent(self) -> list[Any]:
        """The bodies that the provider got."""
        return self.chat.sent

    def began(self) -> str:
        """Who waits at the gate, once somebody does."""
        bell = os.open(self.folder / "began", os.O_RDWR | os.O_NONBLOCK)
        try:
            assert select.select([bell], [], [], 30)[0], "nobody came to the gate"
            return os.read(bell, 1000).decode()
        finally:
            os.close(bell)

    def open_gate(self) -> None:
        """Let whoever waits at the gate go on; this waits until somebody does."""
        (self.folder / "gate").write_text("go")

    @contextmanager
    def look(self, *, size: tuple[int, int] = WIDE, dark: bool = False) -> Iterator["AgentPage"]:
        """The chat, for somebody who has just come."""
        with looking(self.browser, self.server, size=size, dark=dark) as shown:
            chat = opened(shown, self.server)
            yield AgentPage(shown, chat.page)


class AgentPage(ChatPage):
    """A chat with runs in it."""

    def begin(self, words: str) -> Locator:
        """Ask, and do not wait for the answer: the pair."""
        self.send(words)
        pair = self.pair(words)
        expect(pair).to_be_visible()
        return pair

    def send(self, words: str) -> None:
        """Ask, wherever that leads."""
        expect(self.page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        self.press("Control+i")
        self.write(words)
        self.press("Enter")

    def call(self, pair: Locator, name: str) -> Locator:
        """A call of this tool that waits for a decision."""
        return pair.get_by_role("listitem", name=f"Call of {name}")

    def result(self, pair: Locator, name: str, state: str = "done") -> Locator:
        """A call of this tool in the answer, which stands so."""
        return pair.locator(f'summary[data-call="{name}"][data-state="{state}"]')

    def runs(self, server: Served) -> None:
        """All runs."""
        self.page.goto(f"{server.url}/#/runs")
        expect(self.page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()


@contextmanager
def agent_desk(folder: Path) -> Iterator[AgentDesk]:
    """All of it, listening."""
    equipped(folder)
    with chat_desk(folder, CONFIG) as chat, browsing() as browser:
        chat.done("PUT", "topics", {"toolsets": ["sums"]})
        yield AgentDesk(chat, browser, folder)


def add(a: object, b: object, call: str = "c1") -> ToolCall:
    return ToolCall(call, "add", json.dumps({"a": a, "b": b}))


def note(path: str, text: str, call: str = "c1") -> ToolCall:
    return ToolCall(call, "write_note", json.dumps({"path": path, "text": text}))


def waits(name: str, call: str = "c1") -> ToolCall:
    return ToolCall(call, "wait", json.dumps({"name": name}))


def adds(*, then: str = "Four.") -> tuple[Reply, Reply]:
    """The model adds two and two, and says what that is."""
    return calls(add(2, 2)), says(then)


def called(body: Any) -> list[dict[str, Any]]:
    """The arguments of all calls in a request."""
    found = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    return [json.loads(call["function"]["arguments"]) for call in found]


def results(body: Any) -> list[str]:
    """What tools said in a request."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]
