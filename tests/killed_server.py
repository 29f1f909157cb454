"""A program that is killed without a word and started again at the same address, with a browser that looks at it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser

from sightline.model.reply import Reply
from tests.agent_page import CONFIG, AgentDesk, AgentPage, equipped
from tests.background import upstream_in_background
from tests.browser import browsing
from tests.chat.api.http_stage import CONFIG as PROVIDER
from tests.chat.api.http_stage import ChatDesk
from tests.person import Person
from tests.server_process import start_alone
from tests.shared_servers import free_port
from tests.upstream import Upstream


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
        self._child, server = start_alone(self.folder, self._port)
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
