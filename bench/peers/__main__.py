"""`python -m bench.peers`: the comparison with its options; `make bench ARGS=peers` runs it without any."""

import argparse

from bench.peers.report import ROUNDS, peers

QUICK = ("direct", "nginx", "sightline")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.peers", description="Compare Sightline with other gateways.")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help=f"how many (default: {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help=f"one short round, of {', '.join(QUICK)} alone")
    parser.add_argument("--only", default="", metavar="A,B", help="these subjects")
    parser.add_argument("--loads", default="", metavar="A;B", help="these loads, by the beginnings of their names")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or (QUICK if options.quick else ())
    loads = [name.strip() for name in options.loads.split(";") if name.strip()]
    print(peers(names, loads, options.rounds or (1 if options.quick else ROUNDS), is_quick=options.quick))


if __name__ == "__main__":
    main()
