"""A cluster as a pool of hosts: the interface, and a Ray cluster. Ray is imported only when a cluster is named."""

import asyncio
import importlib.util
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from sightline.errors import Code, Fault
from sightline.evals.service.cluster.messages import Introduction
from sightline.exchange.hub import Record
from sightline.settings import Settings


class LostError(Exception):
    """A host was lost, along with the cases it was running."""


class RemoteHost(Protocol):
    """A host, as seen from home. Every method raises `LostError` once the host is lost."""

    async def introduce(self) -> bytes:
        """The host's `Introduction`, encoded."""

    async def unpack(self) -> None:
        """Ask the host to unpack the files that `HostPool.open` was given."""

    async def tell(self, data: bytes) -> None:
        """Send a batch of messages."""

    async def listen(self) -> bytes:
        """Wait for a batch of messages; an empty batch after a while without any."""

    async def end(self) -> None:
        """Kill the host's process, which may have ended already."""


class HostPool(Protocol):
    """A cluster on which hosts can be started."""

    @property
    def address(self) -> str:
        """The cluster's address, as shown to users."""

    async def open(self, files: bytes) -> int:
        """Connect, and make these files available to hosts. Returns how many hosts there is room for. Raises a fault if
        the cluster cannot be reached or lacks what is needed."""

    async def start_host(self) -> RemoteHost:
        """Start another host once there is room. Raises a fault if it cannot be started."""

    async def close(self) -> None:
        """End all remaining hosts and disconnect."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a toolset needs on a host: files and folders below the suites' folder, and names of environment
    variables."""

    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where cases are run if not in this process. `record` stores the entries that hosts send, `ours` is this process's
    introduction, `config` is the path of the configuration file relative to the suites' folder."""

    host_pool: HostPool
    record: Record
    settings: Settings
    ours: Introduction
    config: str = ""
    toolsets: Mapping[str, Needs] = field(default_factory=dict)


SCHEME = "ray://"
REACHED_IN = 10.0
"""Seconds within which the address must accept a connection."""

CONNECTED_IN = 180.0
"""Seconds within which the cluster must accept us; it starts a process for that."""

TRIES = 3
"""How often to try: Ray gives that process a fixed time, which a busy cluster can miss."""

_LEFT_IN = 10.0
_THREADS = 4
_MISSING = "No module named 'sightline"


@dataclass(frozen=True, slots=True)
class RayAddress:
    """The address of a cluster, and the largest number of hosts to use."""

    host: str
    port: int
    most: int | None = None

    @property
    def url(self) -> str:
        place = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{place}:{self.port}"


def ray_address(text: str) -> RayAddress:
    """Parse `ray://HOST:PORT` or `ray://HOST:PORT?hosts=N`."""
    wrong = Fault(
        Code.USAGE,
        f"{text!r} is not the address of a cluster",
        hint="Write ray://HOST:PORT, or ray://HOST:PORT?hosts=4.",
    )
    try:
        parts = urlsplit(text)
        port = parts.port or 10001
        wanted = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise wrong from None
    most = wanted.pop("hosts", [])
    if parts.scheme != "ray" or not parts.hostname or parts.path.strip("/") or parts.username or wanted:
        raise wrong
    if len(most) > 1 or any(not each.isascii() or not each.isdecimal() or int(each) == 0 for each in most):
        raise wrong
    return RayAddress(parts.hostname, port, int(most[0]) if most else None)


class RayHostPool:
    """Hosts as Ray actors of the class `host` with one CPU each. They end when this process ends. `ours` is this
    process's introduction."""

    def __init__(self, address: RayAddress, host: type, ours: Introduction, import_ray: Callable[[], Any]) -> None:
        self._address = address
        self._host = host
        self._ours = ours
        self._import_ray = import_ray
        # Ray delivers answers in its own threads, but starting a call blocks until the cluster has accepted it.
        self._threads: ThreadPoolExecutor | None = None
        self._ray: Any = None
        self._actors: Any = None
        self.files: Any = None

    @property
    def address(self) -> str:
        return self._address.url

    async def open(self, files: bytes) -> int:
        """Connect, and upload the files. Returns the number of hosts to use."""
        if importlib.util.find_spec("ray") is None:
            raise _not_installed()
        await self._reach()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sightline-ray")
        try:
            self._ray = await self._in_thread(self._import_ray)
        except ImportError:
            raise _not_installed() from None
        try:
            async with asyncio.timeout(CONNECTED_IN):
                await self._in_thread(self._connect)
        except TimeoutError:
            raise self._unreachable(f"does not accept the connection within {CONNECTED_IN:g} s") from None
        resources = await self._in_thread(self._ray.cluster_resources)
        self.files = await self._in_thread(lambda: self._ray.put(files))
        size = max(1, int(resources.get("CPU", 1)))
        return min(size, self._address.most or size)

    async def start_host(self) -> "RayHost":
        try:
            return RayHost(self, await self._in_thread(lambda: self._actor_class().remote()))
        except (ImportError, AttributeError):  # raised on the cluster, where our class is looked up
            raise self._not_installed_there() from None
        except (ConnectionError, self._ray.exceptions.RayError) as error:
            # Starting another host would fail too.
            hint = "Finished cases are saved: continue with --resume RUN once it is back."
            raise Fault(Code.NETWORK, f"the cluster {self.address} is lost: {_first_line(error)}", hint=hint) from None

    async def close(self) -> None:
        """Disconnect; Ray ends everything we started."""
        if self._actors is not None:
            self._actors = self.files = None
            try:
                async with asyncio.timeout(_LEFT_IN):
                    await self._in_thread(self._ray.shutdown)
            except TimeoutError:
                pass  # the cluster notices by itself that we are gone
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def call_actor(self, call: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def settle(done: "Future[Any]") -> None:
            if not answer.done():
                error = done.exception()
                if error is None:
                    answer.set_result(done.result())
                else:
                    answer.set_exception(error)

        def came(done: "Future[Any]") -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, done)

        try:
            pending = await self._in_thread(lambda: self._actor_class() and call().future())
            # Ray's own future must not be cancelled: it could not deliver its answer then, and logs an error.
            pending.add_done_callback(came)
            return await answer
        except self._ray.exceptions.RayActorError as error:
            raise (self._not_installed_there() if _MISSING in str(error) else LostError(_first_line(error))) from None
        except self._ray.exceptions.RayTaskError as error:
            raise Fault(Code.CONFIG, f"a host of {self.address} failed: {_last_line(error)}") from None
        except (ConnectionError, self._ray.exceptions.RayError) as error:
            raise LostError(_last_line(error)) from None

    async def kill_actor(self, actor: Any) -> None:
        with suppress(ConnectionError, self._ray.exceptions.RayError):  # it is gone, or will be with the connection
            await self._in_thread(lambda: self._actor_class() and self._ray.kill(actor))

    def _actor_class(self) -> Any:
        """Our actor class. Checks the connection first: without one Ray raises errors that cannot be distinguished from
        others."""
        if not self._ray.is_initialized():
            raise ConnectionError("the connection is lost")
        return self._actors

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _reach(self) -> None:
        """Check that something listens at the address: Ray itself would try for minutes."""
        try:
            async with asyncio.timeout(REACHED_IN):
                _, writer = await asyncio.open_connection(self._address.host, self._address.port)
        except TimeoutError:
            raise self._unreachable(f"does not answer within {REACHED_IN:g} s") from None
        except OSError as error:
            raise self._unreachable(f"cannot be reached: {error.strerror or error}") from None
        writer.close()
        with suppress(OSError):  # it is closed in any case
            await writer.wait_closed()

    def _connect(self) -> None:
        ray = self._ray
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        try:
            self._init_ray(TRIES)
        except ImportError:
            raise _not_installed() from None
        except ConnectionAbortedError as error:  # its message comes last, after the traceback
            raise self._unreachable(f"does not accept the connection: {_last_line(error)}") from None
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            raise self._unreachable(f"does not accept the connection: {_first_line(error)}") from None
        # Otherwise the logs of the cluster's process would be printed here, whatever the settings.
        logging.getLogger("ray.util.client.logsclient").disabled = True
        self._actors = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=_THREADS)(self._host)

    def _init_ray(self, tries: int) -> None:
        try:
            self._ray.init(self.address, log_to_driver=False, logging_level=logging.CRITICAL)
        except ConnectionAbortedError:
            if tries == 1:
                raise
            self._init_ray(tries - 1)

    def _unreachable(self, what: str) -> Fault:
        hint = "Is it the address of the cluster's Ray Client server? Its machines need the same Ray and Python."
        return Fault(Code.NETWORK, f"the cluster {self.address} {what}", hint=hint)

    def _not_installed_there(self) -> Fault:
        ours = self._ours
        hint = f"Install sightline=={ours.sightline} there, for the Python {ours.python} that runs Ray."
        return Fault(Code.CONFIG, f"the machines of {self.address} have no Sightline, or an older one", hint=hint)


class RayHost:
    """One host: a Ray actor."""

    def __init__(self, host_pool: RayHostPool, actor: Any) -> None:
        self._host_pool = host_pool
        self._actor = actor

    async def introduce(self) -> bytes:
        return bytes(await self._call("introduce"))

    async def unpack(self) -> None:
        await self._call("unpack", self._host_pool.files)

    async def tell(self, data: bytes) -> None:
        await self._call("tell", data)

    async def listen(self) -> bytes:
        return bytes(await self._call("listen"))

    async def end(self) -> None:
        await self._host_pool.kill_actor(self._actor)

    async def _call(self, method: str, *arguments: Any) -> Any:
        return await self._host_pool.call_actor(lambda: getattr(self._actor, method).remote(*arguments))


def _not_installed() -> Fault:
    hint = "Install it: pip install 'sightline[ray]', with the version of Ray that the cluster has."
    return Fault(Code.CONFIG, "Ray is not installed here, but it is needed to run cases on a Ray cluster", hint=hint)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:300]


def _last_line(error: BaseException) -> str:
    return str(error).strip().rpartition("\n")[2][:300]
