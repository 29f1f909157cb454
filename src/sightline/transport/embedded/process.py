"""Our side of the embedded model: it is started on first use, asked by one caller at a time, and ends with us."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from sightline.errors import Code, Fault
from sightline.transport.embedded.causes import TOLD, unavailable
from sightline.transport.embedded.messages import ChildOrders
from sightline.transport.embedded.pipes import ChildPipes
from sightline.transport.embedded.weights import WINDOW

URL_VARIABLE = "SIGHTLINE_LOCAL_URL"
KEY_VARIABLE = "SIGHTLINE_LOCAL_KEY"
DEATHS_IN_A_ROW = 3
_CHILD = "sightline.transport.embedded.child"

# The child gets what a process needs to run and nothing that is meant for somebody else, such as providers' keys.
_PASSED_ON = frozenset({"HOME", "LANG", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "USERPROFILE", "WINDIR"})
_PASSED_ON_PREFIXES = ("DYLD_", "GOMP_", "LC_", "LD_", "OMP_", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Running:
    """Where the model listens, without a version, and the key that it wants. Its repr shows no key."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Running({self.url})"


class EmbeddedTurn:
    """The right to ask once. Whoever got no more than a part of an answer says so with `failed`."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.fault: Fault | None = None

    def fail(self, fault: Fault) -> None:
        """The answer broke off."""
        self.fault = fault


class EmbeddedModel:
    """The model `local`. With a `url` it is one that runs already, and no process is started.

    `threads` of 0 are half of the cores. `weights` is a file of weights in place of the installed one.
    """

    def __init__(
        self,
        *,
        python: str = sys.executable,
        environment: Mapping[str, str],
        threads: int = 0,
        context_window: int = WINDOW,
        make_key: Callable[[], str],
        url: str = "",
        weights: str = "",
        start_timeout: float = 60.0,
    ) -> None:
        self.python = python
        self.environment = child_environment(environment)
        self.weights = weights
        self._threads = threads
        self._context_window = context_window
        self._make_key = make_key
        self._start_timeout = start_timeout
        # A server that wants no key reads none, and an empty one would be taken for one that somebody forgot to set.
        own_key = environment.get(KEY_VARIABLE, "").strip() or "none"
        self._elsewhere = Running(_root(url), own_key) if url else None
        self._queue = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._child: ChildPipes | None = None
        self._key = ""
        self._has_answered = False
        self._deaths = 0
        self._is_closed = False

    @property
    def runs_elsewhere(self) -> bool:
        """Whether it is somebody else's process."""
        return self._elsewhere is not None

    @property
    def elsewhere(self) -> Running | None:
        """Where it is, if it is somebody else's process."""
        return self._elsewhere

    @property
    def is_up(self) -> bool:
        """Whether our own process of it answers now."""
        return self._child is not None and self._child.is_alive and bool(self._child.address)

    async def running(self) -> Running:
        """Where it listens; it is started if it does not run. Callers that come meanwhile wait for the same start."""
        return self._elsewhere or (await self._up())[1]

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[EmbeddedTurn]:
        """The right to ask: one caller at a time, in the order of their coming."""
        if self._elsewhere:
            # Whoever runs it has decided how many it answers at once.
            yield EmbeddedTurn(self._elsewhere)
            return
        async with self._queue:
            child, running = await self._up()
            turn = EmbeddedTurn(running)
            try:
                yield turn
            except Fault as fault:
                if await _was_ended(child, fault):
                    raise _crash_fault(child, fault) from fault
                raise
            if turn.fault is not None:
                await _was_ended(child, turn.fault)  # so that the next one does not ask a dead model
            elif child is self._child:
                self._has_answered = True

    async def wait_for_end(self) -> None:
        """Wait for its end, which is a fault unless it was stopped."""
        if self._child is not None:
            raise await self._child.fault()

    async def close(self) -> None:
        """Stop it for good. Whoever waits for it gets a fault."""
        self._is_closed = True
        async with self._starting:
            child, self._child = self._child, None
            if child is not None:
                await child.end()

    async def _up(self) -> tuple[ChildPipes, Running]:
        async with self._starting:
            if self._is_closed:
                raise _stop_fault()
            if self._child is None or not self._child.is_alive:
                self._child = await self._start()
            child, key = self._child, self._key
        await child.settled.wait()
        if child.address:
            return child, Running(child.address, key)
        if self._is_closed:
            raise _stop_fault()
        raise await child.fault()

    async def _start(self) -> ChildPipes:
        """A new process in the place of none or of a dead one."""
        await self._bury()
        if not 0 < self._context_window <= WINDOW:
            raise Fault(
                Code.CONFIG,
                f"the embedded model cannot have a window of {self._context_window} tokens",
                hint=f"Set `context_window` under [local] in sightline.toml to at most {WINDOW}.",
            )
        loop = asyncio.get_running_loop()
        try:
            # -P: a file in the working folder that is called like a module must not be taken for it.
            _, child = await loop.subprocess_exec(
                ChildPipes, self.python, "-P", "-m", _CHILD, env=dict(self.environment)
            )
        except OSError as error:
            raise unavailable("no_python", f"{self.python}: {error.strerror}") from error
        self._key, self._has_answered = self._make_key(), False
        child.write(msgspec.json.encode(self._orders()) + b"\n")
        child.limit(self._start_timeout)
        return child

    async def _bury(self) -> None:
        """Part with the dead process, and count those that were of no use."""
        dead, self._child = self._child, None
        if dead is None:
            return
        await dead.end()
        if self._has_answered or not dead.address:
            self._deaths = 0
            return
        self._deaths += 1
        if self._deaths >= DEATHS_IN_A_ROW:
            self._deaths = 0
            raise unavailable("dies", f"the last time: {dead.end_in_words()[1]}")

    def _orders(self) -> ChildOrders:
        return ChildOrders(
            key=self._key, threads=self._threads, context_window=self._context_window, weights=self.weights
        )


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the child gets of our environment."""
    passed_on = {
        name: value
        for name, value in environment.items()
        if name.upper() in _PASSED_ON or name.upper().startswith(_PASSED_ON_PREFIXES)
    }
    # Threads that spin while they wait take the cores from those that they wait for.
    return {"OMP_WAIT_POLICY": "passive", **passed_on}


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


def _stop_fault() -> Fault:
    return Fault(Code.CANCELLED, "the embedded model has been stopped, because Sightline is ending")


async def _was_ended(child: ChildPipes, fault: Fault) -> bool:
    """Whether it was its end that broke the connection, which is heard of before the end is."""
    return fault.code is Code.NETWORK and await child.ends_within(1.0)


def _crash_fault(child: ChildPipes, fault: Fault) -> Fault:
    cause, detail = child.end_in_words()
    return Fault(
        Code.NETWORK,
        f"the embedded model ended while it answered: {TOLD[cause].message} ({detail})",
        hint="Send it again: the model is started anew.",
        details=fault.details,
    )
