import asyncio
import importlib
import importlib.util
import os
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from sightline.app.evals import import_ray
from sightline.errors import Code, Fault
from sightline.evals.service.cluster.host_pool import HostPool, LostError, RayAddress, RayHostPool, ray_address
from tests.cluster_stage import OURS


class RayError(Exception):
    """As Ray's own is."""


class RayActorError(RayError):
    """As Ray's own is."""


class RayTaskError(RayError):
    """As Ray's own is."""


class Method:
    """A method of an actor: what it does is done at once."""

    def __init__(self, does: Callable[..., Any]) -> None:
        self._does = does

    def remote(self, *arguments: Any) -> "Method":
        self._arguments = arguments
        return self

    def future(self) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(self._does(*self._arguments))
        except RayError as error:
            done.set_exception(error)
        return done


class FakeRay:
    """What is used of Ray, without it. `listens` is what an actor does when it is listened to."""

    exceptions = SimpleNamespace(RayError=RayError, RayActorError=RayActorError, RayTaskError=RayTaskError)

    def __init__(
        self, listens: Callable[[], bytes] = lambda: b"news", trouble: Exception | None = None, times: int = 1000
    ) -> None:
        self.listens = listens
        self.trouble = trouble
        self.times = times
        self.told: list[Any] = []
        self.killed: list[Any] = []
        self.is_connected = False
        self.refuses: Exception | None = None

    def init(self, address: str, **_options: Any) -> None:
        self.told.append(address)
        if self.trouble is not None and len(self.told) <= self.times:
            raise self.trouble
        self.is_connected = True

    def is_initialized(self) -> bool:
        return self.is_connected

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def put(self, data: bytes) -> tuple[str, bytes]:
        return "ref", data

    def remote(self, **_options: Any) -> Callable[[type], Any]:
        return lambda _cls: SimpleNamespace(remote=self._actor)

    def _actor(self) -> Any:
        if self.refuses is not None:
            raise self.refuses
        return SimpleNamespace(
            introduce=Method(lambda: b"{}"),
            unpack=Method(self.told.append),
            tell=Method(self.told.append),
            listen=Method(self.listens),
        )

    def kill(self, actor: Any) -> None:
        self.killed.append(actor)
        if len(self.killed) > 1:
            raise RayActorError("it is gone")

    def shutdown(self) -> None:
        self.is_connected = False


@pytest.fixture
def port() -> Any:
    """Somewhere that somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def with_ray(monkeypatch: pytest.MonkeyPatch, fake: FakeRay) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setattr(importlib, "import_module", lambda _name: fake)


def pool_at(address: RayAddress) -> RayHostPool:
    return RayHostPool(address, object, OURS, import_ray)


@asynccontextmanager
async def opened_pool(monkeypatch: pytest.MonkeyPatch, port: int, fake: FakeRay) -> AsyncIterator[RayHostPool]:
    with_ray(monkeypatch, fake)
    host_pool = pool_at(RayAddress("127.0.0.1", port))
    await host_pool.open(b"")
    yield host_pool
    await host_pool.close()


def told(host_pool: RayHostPool) -> str:
    """Why it cannot be opened."""

    async def story() -> Fault:
        with pytest.raises(Fault) as caught:
            await host_pool.open(b"")
        await host_pool.close()
        return caught.value

    fault = asyncio.run(story())
    return f"{fault.code.value}: {fault.message} ({fault.hint})"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ray://head:20001", RayAddress("head", 20001)),
        ("ray://head", RayAddress("head", 10001)),
        ("ray://10.0.0.1:20001?hosts=4", RayAddress("10.0.0.1", 20001, 4)),
        ("ray://[::1]:20001/", RayAddress("::1", 20001)),
    ],
)
def test_a_cluster_is_named_by_its_address(text: str, address: RayAddress) -> None:
    assert ray_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "ray:", "ray://", "ray:head", "ray://head:port", "ray://head:99999", "ray://head/path", "ray://head?hosts=0",
        "ray://head?hosts=many", "ray://head?hosts=1&hosts=2", "ray://head?cores=4", "ray://head?hosts",
        "ray://user:pass@head:20001",
    ],
)  # fmt: skip
def test_anything_else_is_no_cluster(text: str) -> None:
    with pytest.raises(Fault, match="is not the address of a cluster") as caught:
        ray_address(text)
    assert caught.value.code is Code.USAGE


def test_address_is_formatted_as_a_ray_url() -> None:
    assert RayAddress("::1", 20001, 4).url == "ray://[::1]:20001"
    assert pool_at(RayAddress("head", 20001, 4)).address == "ray://head:20001"


def test_missing_ray_error_explains_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    words = told(pool_at(RayAddress("127.0.0.1", 1)))
    assert words.startswith("config: Ray is not installed here")
    assert "pip install 'sightline[ray]'" in words


def test_half_of_ray_is_none(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    def broken(_name: str) -> Any:
        raise ImportError

    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setattr(importlib, "import_module", broken)
    assert "Ray is not installed here" in told(pool_at(RayAddress("127.0.0.1", port)))
    monkeypatch.undo()
    with_ray(monkeypatch, FakeRay(trouble=ImportError("no grpc")))
    assert "Ray is not installed here" in told(pool_at(RayAddress("127.0.0.1", port)))


def test_unreachable_cluster_address_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    with_ray(monkeypatch, FakeRay())
    words = told(pool_at(RayAddress("127.0.0.1", free)))
    assert words.startswith(f"network: the cluster ray://127.0.0.1:{free} cannot be reached: ")


def test_refused_cluster_connection_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    with_ray(monkeypatch, FakeRay(trouble=RuntimeError("Python minor versions differ\nand more\n")))
    words = told(pool_at(RayAddress("127.0.0.1", port)))
    assert "does not accept the connection: Python minor versions differ (" in words


FAILED = ConnectionAbortedError("Initialization failure from server:\nTraceback\nTimeoutError: it took too long")


def test_failed_cluster_start_is_retried(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    fake = FakeRay(trouble=FAILED, times=2)
    with_ray(monkeypatch, fake)
    assert asyncio.run(pool_at(RayAddress("127.0.0.1", port)).open(b"files")) == 3
    assert len(fake.told) == 3
    fake = FakeRay(trouble=FAILED)
    with_ray(monkeypatch, fake)
    with pytest.raises(Fault, match="does not accept the connection: TimeoutError: it took too long"):
        asyncio.run(pool_at(RayAddress("127.0.0.1", port)).open(b"files"))
    assert len(fake.told) == 3


async def test_hosts_are_actors_with_our_files(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    fake = FakeRay()
    with_ray(monkeypatch, fake)
    small: HostPool = pool_at(RayAddress("127.0.0.1", port, 2))
    assert await small.open(b"files") == 2
    post = await small.start_host()
    assert await post.introduce() == b"{}"
    await post.unpack()
    await post.tell(b"begin")
    assert await post.listen() == b"news"
    assert fake.told == [f"ray://127.0.0.1:{port}", ("ref", b"files"), b"begin"]
    await post.end()
    await post.end()
    assert len(fake.killed) == 2
    await small.close()
    assert not fake.is_connected
    whole = pool_at(RayAddress("127.0.0.1", port))
    assert await whole.open(b"") == 3
    await whole.close()


@pytest.mark.parametrize(
    ("trouble", "raised", "words"),
    [
        (RayActorError("The actor died.\nand more"), LostError, "The actor died."),
        (RayActorError("…\nModuleNotFoundError: No module named 'sightline'"), Fault, "have no Sightline"),
        (RayTaskError("traceback\nValueError: odd"), Fault, "failed: ValueError: odd"),
        (RayError("the connection is lost"), LostError, "the connection is lost"),
    ],
)
async def test_what_goes_wrong_with_an_actor_is_a_loss_or_a_fault(
    monkeypatch: pytest.MonkeyPatch, port: int, trouble: Exception, raised: type[Exception], words: str
) -> None:
    def fails() -> bytes:
        raise trouble

    async with opened_pool(monkeypatch, port, FakeRay(fails)) as host_pool:
        post = await host_pool.start_host()
        with pytest.raises(raised, match=words):
            await post.listen()


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (ModuleNotFoundError("No module named 'sightline'"), "have no Sightline, or an older one"),
        (AttributeError("no HostProcess"), "have no Sightline, or an older one"),
        (ConnectionError("it is gone"), "the cluster ray://.* is lost: it is gone"),
    ],
)
async def test_an_actor_that_cannot_be_made_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, port: int, trouble: Exception, words: str
) -> None:
    fake = FakeRay()
    fake.refuses = trouble
    async with opened_pool(monkeypatch, port, fake) as host_pool:
        with pytest.raises(Fault, match=words):
            await host_pool.start_host()


async def test_without_a_connection_hosts_are_lost_and_none_is_had(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    fake = FakeRay()
    async with opened_pool(monkeypatch, port, fake) as host_pool:
        post = await host_pool.start_host()
        fake.is_connected = False
        with pytest.raises(LostError, match="the connection is lost"):
            await post.listen()
        with pytest.raises(Fault, match="is lost: the connection is lost"):
            await host_pool.start_host()
        await post.end()
        assert fake.killed == []


def test_ray_starts_nothing_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ENABLE_AUTO_CONNECT", "1")
    monkeypatch.setattr(importlib, "import_module", lambda name: os.environ["RAY_ENABLE_AUTO_CONNECT"] + name)
    assert import_ray() == "0ray"
