"""Run the benchmarks and print their tables: `python -m bench.run [REPORT …]`, all of them where none is named."""

import argparse
import platform
from collections.abc import Callable

import msgspec

from bench import chat, codecs, edits, estimates, loop, page, startup, store, store_search, transport
from bench.evals import report as evals
from bench.peers import report as gateways

REPORTS: dict[str, Callable[[], str]] = {
    "requests": codecs.requests_report,
    "streams": codecs.streams_report,
    "growth": codecs.growth_report,
    "startup": startup.report,
    "transport": transport.report,
    "estimates": estimates.report,
    "edits": edits.report,
    "store": lambda: f"{store.report()}\n{store_search.report()}",
    "page": page.report,
    "chat": chat.report,
    "loop": loop.report,
    "peers": gateways.peers,
    "memory": gateways.memory,
    "evals": evals.report,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description="Print speed ratios, measured side by side.")
    parser.add_argument("report", nargs="*", metavar="REPORT", help=f"some of {', '.join(REPORTS)} (default: all)")
    chosen = parser.parse_args().report or list(REPORTS)
    if unknown := set(chosen) - set(REPORTS):
        parser.error(f"unknown report: {', '.join(sorted(unknown))}")
    print(f"Python {platform.python_version()}, msgspec {msgspec.__version__}; medians of interleaved rounds")
    for name in chosen:
        print(REPORTS[name](), flush=True)


if __name__ == "__main__":
    main()
