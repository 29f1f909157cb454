"""The program of the child process: it loads the engine and serves the model on loopback until its input ends.

A missing library is an error at import, and a processor without AVX2 kills the process there. That is why it has its
own process, and why the engine is imported nowhere else. The parent holds the other end of its input, so that it ends
with the parent, however that ends.

With `--inspect` it only checks what the model needs and loads nothing, so that it runs even if nothing is installed: it
checks with the model's Python and environment, not with ours.
"""

import importlib
import os
import signal
import sys
import sysconfig
from importlib import metadata
from types import ModuleType
from typing import BinaryIO, Protocol

import msgspec

from sightline.platform.processes import cores, ignore_signals
from sightline.transport.embedded.causes import (
    SHA256,
    Answer,
    Cause,
    ChildFailed,
    ChildOrders,
    ChildStarted,
    are_weights,
    default_threads,
    find_weights,
    has_avx2,
    has_build,
    openmp_problem,
    sha256_of,
)

ENGINE = "xllamacpp"
MODEL = "smollm2-135m-instruct"
INSPECT = "--inspect"


class EngineServer(Protocol):
    """The engine's server. It has no stop method: dropping the last reference closes its socket and joins its
    threads."""

    listening_address: str


class CannotServeError(Exception):
    """Why there is no model; sent to the parent as a cause and a detail."""

    def __init__(self, cause: Cause, detail: str = "") -> None:
        super().__init__(cause, detail)
        self.failed = ChildFailed(cause, detail)


def main() -> int:
    """Serve until the input ends, which ends the process; returns 1 if there is nothing to serve."""
    # A Ctrl-C in a terminal reaches every process there; only the parent decides what it means.
    ignore_signals(signal.SIGINT)
    parent = _private_output()
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChildOrders)
    try:
        server = serve(orders)
    except CannotServeError as reason:
        _send(parent, reason.failed)
        return 1
    _send(parent, ChildStarted(server.listening_address))
    sys.stdin.buffer.read()
    # The engine's shutdown can hang right after its start, and nothing in it is worth waiting for.
    os._exit(0)


def serve(orders: ChildOrders) -> EngineServer:
    """Start the engine's server, and return it once it listens. Raises CannotServeError."""
    engine = load_engine()
    weights = find_weights()
    if weights is None:
        raise CannotServeError("no_weights")
    if not are_weights(weights):
        raise CannotServeError("bad_weights", f"{weights.name} is not a GGUF file")
    settings = engine.CommonParams()
    settings.model.path = str(weights)
    settings.model_alias = {MODEL}
    settings.hostnames, settings.port, settings.api_keys = ["127.0.0.1"], 0, [orders.key]
    # Otherwise any web page could send it requests. Its own page would be one more thing that listens.
    settings.cors_origins, settings.ui, settings.offline, settings.verbosity = "localhost", False, True, 0
    # The context is divided by the number of parallel requests, and the prompt cache takes up to 8 GiB by default.
    settings.n_ctx, settings.n_parallel, settings.cache_ram_mib = orders.context_window, 1, 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = orders.threads or default_threads(cores())
    try:
        return engine.Server(settings)  # type: ignore[no-any-return]
    except RuntimeError as error:
        if sha256_of(weights) != SHA256:
            raise CannotServeError("bad_weights", f"{weights.name} has the wrong SHA-256") from error
        raise CannotServeError("start_failed", str(error)) from error


def load_engine() -> ModuleType:
    """Import the engine. Raises CannotServeError with what is missing."""
    try:
        return importlib.import_module(ENGINE)
    except ModuleNotFoundError as error:
        if error.name != ENGINE:
            raise CannotServeError("engine_broken", str(error)) from error
        soabi = str(sysconfig.get_config_var("SOABI"))
        where = sysconfig.get_platform()
        raise CannotServeError("no_engine" if has_build(where, soabi) else "no_build", where) from error
    except ImportError as error:
        raise CannotServeError("libgomp" if "libgomp" in str(error) else "engine_broken", str(error)) from error


def _private_output() -> BinaryIO:
    """The pipe to the parent, with nothing else in it: the engine's output goes to standard error."""
    parent = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return parent


def _send(parent: BinaryIO, answer: Answer) -> None:
    with parent:
        parent.write(msgspec.json.encode(answer) + b"\n")


# --- what the model needs ---


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. An empty `engine` or `weights` is not installed; `avx2` is None if unknown."""

    platform: str
    has_build: bool
    engine: str
    weights: str
    sha256: str
    openmp_problem: str
    avx2: bool | None


def inspect() -> Inspection:
    """Inspect this Python and this machine."""
    platform = sysconfig.get_platform()
    found = find_weights()
    try:
        version = metadata.version(ENGINE)
    except metadata.PackageNotFoundError:
        version = ""
    return Inspection(
        platform=platform,
        has_build=has_build(platform, str(sysconfig.get_config_var("SOABI"))),
        engine=version,
        weights=found.name if found else "",
        sha256=sha256_of(found) if found else "",
        openmp_problem=openmp_problem(platform),
        avx2=has_avx2(platform),
    )


if __name__ == "__main__":
    if sys.argv[1:2] == [INSPECT]:
        sys.stdout.buffer.write(msgspec.json.encode(inspect()))
    else:
        sys.exit(main())
