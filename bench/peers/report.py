"""The two reports, or what this machine lacks for them."""

import shutil
import sys
from collections.abc import Sequence

from bench.peers.workshop import MissingError

ROUNDS = 3
TITLE = "## Sightline beside other gateways\n\n"
# The rest of this package needs Linux as soon as it is imported, and `make bench` has other reports to print.


def peers(names: Sequence[str] = (), loads: Sequence[str] = (), rounds: int = ROUNDS, *, is_quick: bool = False) -> str:
    """The comparison of the named subjects under the named loads, or of all under all."""
    if what := lacking():
        return f"{TITLE}Not measured: {what}."
    from bench.peers.below_tls import report as below_tls
    from bench.peers.comparing import compare
    from bench.peers.markdown import markdown
    from bench.peers.scenarios import chosen
    from bench.peers.sockets import report as sockets
    from bench.peers.subjects import SUBJECTS

    if unknown := set(names) - set(SUBJECTS):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    if list(loads) == ["websocket"]:
        return TITLE + sockets()
    if list(loads) == ["tls"]:
        return TITLE + below_tls()
    scenarios = [each for each in chosen(is_quick=is_quick) if not loads or each.name.startswith(tuple(loads))]
    if not scenarios:
        sys.exit(f"no such load; there are {'; '.join(each.name for each in chosen(is_quick=is_quick))}")
    try:
        compared = markdown(compare([SUBJECTS[name] for name in names or SUBJECTS], scenarios, rounds))
        if loads:
            return compared
        print(compared, flush=True)  # it took half an hour: what fails behind it must not lose it
        return f"\n{sockets()}\n\n{below_tls()}"
    except MissingError as error:
        return f"{TITLE}Not measured: {error}."


def memory() -> str:
    """Sightline's memory over many exchanges."""
    title = "## Memory\n\n"
    if what := lacking():
        return f"{title}Not measured: {what}."
    from bench.peers.memory import report

    try:
        return report()
    except MissingError as error:
        return f"{title}Not measured: {error}."


def lacking() -> str:
    """What this machine does not have, or nothing."""
    if sys.platform != "linux":
        return "it needs Linux, for epoll and /proc"
    if not (shutil.which("gcc") or shutil.which("cc")):
        return "it needs a C compiler; on Debian and Ubuntu: apt install gcc"
    return ""
