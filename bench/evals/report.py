"""The report, or what this machine lacks for it."""

from collections.abc import Sequence

from bench.peers.report import lacking
from bench.peers.workshop import MissingError

ROUNDS = 3
TITLE = "## Sightline beside other tools for evals\n\n"
# The rest of this package needs Linux as soon as it is imported, and `make bench` has other reports to print.


def report(rounds: int = ROUNDS, names: Sequence[str] = ()) -> str:
    """The comparison of all tools, or of the named ones."""
    if what := lacking():
        return f"{TITLE}Not measured: {what}."
    from bench.evals.comparing import compare
    from bench.evals.markdown import markdown
    from bench.evals.tools import TOOLS

    try:
        return TITLE + markdown(compare([tool for tool in TOOLS if not names or tool.name in names], rounds))
    except MissingError as error:
        return f"{TITLE}Not measured: {error}."
