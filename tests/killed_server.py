"""A program that is killed without a word and started again at the same address, with a browser that looks at it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser

from sightline.model.reply import Reply
from tests.agent_page import CONFIG, AgentDesk, AgentPage, equipped
from tests.background import upstream_in_background
from tests.browser import browsing
from tests.chat.api.http_stage import CONFIG as PROVIDER
from tests.chat.api.http_stage import ChatDesk
from tests.gateway_server import Served
from tests.person import Person
from tests.shared_servers import free_port
from tests.upstream import Upstream

SERVING = """
import asyncio, sys
from sightline.app.configuration import configuration
from sightline.app.server import open_server
from sightline.server.listener import bind_sockets

async def main(config, folder, port):
    sockets = bind_sockets("127.0.0.1", int(port))
    port = sockets[0].getsockname()[1]
    async with open_server(configuration(config), folder, host="127.0.0.1", port=port) as (listening, link):
        print(link, flush=True)
        await listening.run_on(sockets)

asyncio.run(main(*sys.argv[1:]))
"""


@dataclass
class Killable:
    """The same program again and again; `now` is the one that runs."""

    folder: Path
    upstream: Upstream
    browser: Browser
    _child: "subprocess.Popen[str] | None" = None
    _port: int = field(default_factory=free_port)
    _made: list[AgentDesk] = field(default_factory=list)

    @property
    def now(self) -> AgentDesk:
        return self._made[-1]

    def says(self, *replies: Reply) -> None:
        """What the model replies from now on."""
        self.now.says(*replies)

    @contextmanager
    def look(self) -> Iterator[AgentPage]:
        """The chat."""
        with self.now.look() as chat:
            yield chat

    def start(self) -> None:
        """Start it, where it was if it has been somewhere."""
        command = [sys.executable, "-c", SERVING, str(self.folder / "sightline.toml"), str(self.folder / "data")]
        self._child = subprocess.Popen([*command, str(self._port)], stdout=subprocess.PIPE, text=True)
        link = urlsplit(self._child.stdout.readline().strip())
        server = Served(f"http://{link.netloc}", parse_qs(link.query)["token"][0], None)
        self._made.append(AgentDesk(ChatDesk(server, Person(server), self.upstream), self.browser, self.folder))

    def kill(self) -> None:
        """End it as a power cut would."""
        child, self._child = self._child, None
        if child is not None and child.stdout is not None:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()


@contextmanager
def killable(folder: Path) -> Iterator[Killable]:
    """The program with its tools, and a browser."""
    equipped(folder)
    with upstream_in_background() as upstream, browsing() as browser:
        (folder / "sightline.toml").write_text(PROVIDER.format(url=upstream.url) + CONFIG)
        stage = Killable(folder, upstream, browser)
        try:
            stage.start()
            stage.now.chat.done("PUT", "topics", {"toolsets": ["sums"]})
            yield stage
        finally:
            stage.kill()
