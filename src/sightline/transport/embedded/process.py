"""The parent's side of the embedded model: started on first use, one request at a time, stopped with Sightline."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import msgspec

from sightline.errors import Code, Fault
from sightline.platform.processes import has_ended
from sightline.transport.embedded.causes import (
    CAUSE_TEXTS,
    WINDOW,
    Answer,
    Cause,
    ChildFailed,
    ChildOrders,
    ChildStarted,
    cause_of_exit,
    unavailable,
)

COMPLAINTS_KEPT = 4096
ANSWER_LIMIT = 65536
_PATIENCE = 2.0


class ChildPipes(asyncio.SubprocessProtocol):
    """The three pipes of a child. `settled` is set when it has answered or no longer can, `ended` when it is gone."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()
        self.ended = asyncio.Event()
        self.answer: Answer | None = None
        self.exit_code: int | None = None
        self._said = bytearray()
        self._complaints = bytearray()
        self._given_up: Cause | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._transport: asyncio.SubprocessTransport | None = None

    # --- called by asyncio ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaints += data
            del self._complaints[:-COMPLAINTS_KEPT]
        elif not self.settled.is_set():
            self._said += data
            line, newline, _ = self._said.partition(b"\n")
            if newline or len(line) > ANSWER_LIMIT:
                self._settle(bytes(line))

    def process_exited(self) -> None:
        assert self._transport is not None
        self.exit_code = self._transport.get_returncode()

    def connection_lost(self, exc: Exception | None) -> None:
        # Only now all output has been read: the end of a process can be noticed before its last output.
        self._finish_start()
        self.ended.set()

    # --- called by the parent -------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """Whether the process is still running, as far as is known."""
        assert self._transport is not None
        return self.exit_code is None and not self.ended.is_set() and not has_ended(self._transport.get_pid())

    @property
    def address(self) -> str:
        """Where it listens; empty if it never did."""
        return self.answer.address if isinstance(self.answer, ChildStarted) else ""

    def write(self, line: bytes) -> None:
        self._input().write(line)

    def limit(self, seconds: float) -> None:
        """Kill the process if it has not answered within this many seconds."""
        if self.settled.is_set():
            return
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.give_up, "timeout")

    def give_up(self, cause: Cause) -> None:
        """Stop waiting for an answer, and kill the process."""
        if not self.settled.is_set():
            self._given_up = cause
            self.kill()
            self._finish_start()

    def kill(self) -> None:
        assert self._transport is not None
        if self._transport.get_returncode() is None:
            self._transport.kill()

    async def end(self) -> None:
        """Close its input, then terminate it, then kill it: it is gone when this returns."""
        assert self._transport is not None
        try:
            self._input().close()
            for insist in (self._transport.terminate, self._transport.kill):
                if await self.ends_within(_PATIENCE):
                    return
                if self.exit_code is None:
                    insist()
            await self.ended.wait()
        finally:
            self._transport.close()

    async def ends_within(self, seconds: float) -> bool:
        """Whether it ends within this many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    async def fault(self) -> Fault:
        """Why there is no address. Waits for the end of the process if necessary."""
        if isinstance(self.answer, ChildFailed):
            return unavailable(self.answer.cause, self.answer.detail)
        if self._given_up:
            return unavailable(self._given_up, self.last_complaint)
        await self.ended.wait()
        return unavailable(*self.end_in_words())

    def end_in_words(self) -> tuple[Cause, str]:
        """The meaning of its exit, and the known details."""
        code = 0 if self.exit_code is None else self.exit_code
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return cause_of_exit(code), "; ".join(filter(None, (how, self.last_complaint)))

    @property
    def last_complaint(self) -> str:
        """The last line of its standard error: of a traceback, the one with the error."""
        lines = self._complaints.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _settle(self, line: bytes) -> None:
        try:
            self.answer = msgspec.json.decode(line, type=Answer)
        except msgspec.DecodeError:
            self.answer = ChildFailed("start_failed", "what it said is not understood")
        self._finish_start()

    def _finish_start(self) -> None:
        self.settled.set()
        if self._deadline is not None:
            self._deadline.cancel()

    def _input(self) -> asyncio.WriteTransport:
        assert self._transport is not None
        return cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))


URL_VARIABLE = "SIGHTLINE_LOCAL_URL"
KEY_VARIABLE = "SIGHTLINE_LOCAL_KEY"
DEATHS_IN_A_ROW = 3
CHILD = "sightline.transport.embedded.child"

# The child gets what a process needs to run and nothing else, in particular no providers' keys.
_PASSED_ON = frozenset({"HOME", "LANG", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "USERPROFILE", "WINDIR"})
_PASSED_ON_PREFIXES = ("DYLD_", "GOMP_", "LC_", "LD_", "OMP_", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Running:
    """Where the model listens, without an API version, and the key that it requires. Its repr shows no key."""

    url: str
    key: str

    def __repr__(self) -> str:
        return f"Running({self.url})"


class EmbeddedModel:
    """The model `local`. With a `url`, it is one that is already running, and no process is started. 0 `threads` means
    half of the cores."""

    def __init__(
        self,
        *,
        python: str = sys.executable,
        environment: Mapping[str, str],
        threads: int = 0,
        context_window: int = WINDOW,
        make_key: Callable[[], str],
        url: str = "",
        start_timeout: float = 60.0,
    ) -> None:
        self.python = python
        self.environment = child_environment(environment)
        self._threads = threads
        self._context_window = context_window
        self._make_key = make_key
        self._start_timeout = start_timeout
        # A server without a key ignores it, and an empty one would look like a missing setting.
        own_key = environment.get(KEY_VARIABLE, "").strip() or "none"
        self.elsewhere = Running(url.rstrip("/").removesuffix("/v1"), own_key) if url else None
        """The server, if another program runs it."""
        self._queue = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._child: ChildPipes | None = None
        self._key = ""
        self._has_answered = False
        self._deaths = 0
        self._is_closed = False

    @property
    def is_up(self) -> bool:
        """Whether our own process is running and listens."""
        return self._child is not None and self._child.is_alive and bool(self._child.address)

    async def running(self) -> Running:
        """Where it listens; it is started if it is not running. Concurrent callers wait for the same start."""
        return self.elsewhere or (await self._ensure_running())[1]

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Running]:
        """A turn to send a request: one caller at a time, in order of arrival. Raise a fault inside it if the response
        was interrupted."""
        if self.elsewhere:
            # Its own settings determine how many requests it answers at once.
            yield self.elsewhere
            return
        async with self._queue:
            child, running = await self._ensure_running()
            try:
                yield running
            except Fault as fault:
                # The process that broke the connection may be noticed to have ended only a moment later.
                if fault.code is Code.NETWORK and await child.ends_within(1.0):
                    raise _crash_fault(child, fault) from fault
                raise
            if child is self._child:
                self._has_answered = True

    async def wait_for_end(self) -> None:
        """Wait until it ends, and raise the fault that ended it. Returns at once if it is not running."""
        if self._child is not None:
            raise await self._child.fault()

    async def close(self) -> None:
        """Stop it for good. Callers that wait for it get a fault."""
        self._is_closed = True
        async with self._starting:
            child, self._child = self._child, None
            if child is not None:
                await child.end()

    async def _ensure_running(self) -> tuple[ChildPipes, Running]:
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
        await self._remove_ended()
        if not 0 < self._context_window <= WINDOW:
            raise Fault(
                Code.CONFIG,
                f"the embedded model cannot have a window of {self._context_window} tokens",
                hint=f"Set `context_window` under [local] in sightline.toml to at most {WINDOW}.",
            )
        loop = asyncio.get_running_loop()
        try:
            # -P: a file in the working folder with the name of a module must not be imported in its place.
            _, child = await loop.subprocess_exec(
                ChildPipes, self.python, "-P", "-m", CHILD, env=dict(self.environment)
            )
        except OSError as error:
            raise unavailable("no_python", f"{self.python}: {error.strerror}") from error
        self._key, self._has_answered = self._make_key(), False
        orders = ChildOrders(key=self._key, threads=self._threads, context_window=self._context_window)
        child.write(msgspec.json.encode(orders) + b"\n")
        child.limit(self._start_timeout)
        return child

    async def _remove_ended(self) -> None:
        """Remove the ended process, and count those that ended before they answered. Raises a fault after several in a
        row."""
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


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    passed_on = {
        name: value
        for name, value in environment.items()
        if name.upper() in _PASSED_ON or name.upper().startswith(_PASSED_ON_PREFIXES)
    }
    # Threads that spin while waiting take the cores from those that they wait for.
    return {"OMP_WAIT_POLICY": "passive", **passed_on}


def _stop_fault() -> Fault:
    return Fault(Code.CANCELLED, "the embedded model has been stopped, because Sightline is ending")


def _crash_fault(child: ChildPipes, fault: Fault) -> Fault:
    cause, detail = child.end_in_words()
    return Fault(
        Code.NETWORK,
        f"the embedded model ended while it answered: {CAUSE_TEXTS[cause].message} ({detail})",
        hint="Send it again; the model is restarted.",
        details=fault.details,
    )
