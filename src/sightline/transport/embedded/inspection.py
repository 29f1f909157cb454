"""The program that looks at what the embedded model needs, without loading it: it runs where nothing is installed.

It is a process of its own, because it looks with the model's Python and environment and not with ours.
"""

import sys
import sysconfig
from importlib import metadata

import msgspec

from sightline.transport.embedded.causes import find_weights, has_avx2, has_build, openmp_problem, sha256_of
from sightline.transport.embedded.child import ENGINE


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. An empty `engine` or `weights` is not installed; `avx2` is None where it is not known."""

    platform: str
    has_build: bool
    engine: str
    weights: str
    sha256: str
    openmp_problem: str
    avx2: bool | None


def inspect(weights: str = "") -> Inspection:
    """Look at this Python and this machine."""
    platform = sysconfig.get_platform()
    found = find_weights(weights)
    return Inspection(
        platform=platform,
        has_build=has_build(platform, str(sysconfig.get_config_var("SOABI"))),
        engine=_version_of(ENGINE),
        weights=found.name if found else "",
        sha256=sha256_of(found) if found else "",
        openmp_problem=openmp_problem(platform),
        avx2=has_avx2(platform),
    )


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(inspect(sys.argv[1] if len(sys.argv) > 1 else "")))
