"""What the machine offers to the engine: a build for its platform, instructions, cores, and the OpenMP library."""

import ctypes
import os
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_OPENMP = "libgomp.so.1"


def has_build(platform: str, soabi: str) -> bool:
    """Whether the engine is published for such a Python: `linux-x86_64`, `macosx-13.0-arm64`, `win-amd64`."""
    if platform.startswith("linux"):
        return platform.endswith(("x86_64", "aarch64")) and "musl" not in soabi
    return platform == "win-amd64" or platform.startswith("macosx")


def cores() -> int:
    """The cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def default_threads(available: int) -> int:
    """Half of the cores: with all of them, threads that wait for each other on a busy machine stand still together."""
    return max(1, available // 2)


def has_avx2(platform: str, cpuinfo: Path = _CPUINFO) -> bool | None:
    """Whether the processor has the instructions that the engine's x86 build needs; None where nobody says."""
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
