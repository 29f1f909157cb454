"""The progress line of a run on a terminal, and the handling of interrupts."""

import os
import sys
from collections.abc import Callable

from sightline.cli.terminal import is_terminal, say
from sightline.cli.traffic import money
from sightline.evals.service.progress import Progress

_BAR = 20
_USUAL = 80
_SELDOM = 0.1
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A progress line, shown only on a terminal. It is written at most ten times a second, and at the end."""

    def __init__(self, elapsed: Callable[[], float], *, is_quiet: bool = False) -> None:
        self._elapsed = elapsed
        self._is_shown = not is_quiet and is_terminal(sys.stderr)
        self._last: float | None = None

    def update(self, progress: Progress) -> None:
        """Show this progress."""
        now = self._elapsed()
        is_due = self._last is None or now - self._last >= _SELDOM or progress.done == progress.of
        if self._is_shown and is_due:
            self._last = now
            width = max(1, _columns() - 1)
            line = line_of(progress)
            # On a narrow terminal, numbers are more useful than a bar.
            line = line if len(line) <= width else line.partition("] ")[2]
            say(line[:width], end="", style=_CLEAR)

    def close(self) -> None:
        """Clear the line."""
        if self._last is not None:
            self._last = None
            say("", end="", style=_CLEAR)


def _columns() -> int:
    """The width of the terminal on stderr; stdout may be redirected."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL


def line_of(progress: Progress) -> str:
    """The progress line's text."""
    filled = round(_BAR * progress.done / progress.of) if progress.of else _BAR
    counts = [
        f"{count} {word}"
        for count, word in (
            (progress.passed, "passed"),
            (progress.failed, "failed"),
            (progress.errors, "errors" if progress.errors != 1 else "error"),
            (progress.not_graded, "not graded"),
            (progress.skipped, "skipped"),
        )
        if count
    ]
    spent = list(filter(None, [_cost_text(progress)]))
    pace = [f"{progress.rate:.1f}/s"] if progress.rate else []
    left = [f"{clock_time(progress.left_s)} left"] if progress.left_s and progress.done < progress.of else []
    summary = ", ".join(counts)
    parts = [f"{progress.done}/{progress.of}", *([summary] if summary else []), *pace, *spent, *left]
    return f"[{'#' * filled}{'-' * (_BAR - filled)}] {'  '.join(parts)}"


def _cost_text(progress: Progress) -> str:
    known = money(progress.cost) if progress.cost else ""
    if not progress.cost_unknown:
        return known
    return f"{known} + {progress.cost_unknown} unknown" if known else f"{progress.cost_unknown} of unknown cost"


def clock_time(seconds: float) -> str:
    """`0:42`, `12:05`, `1:02:03`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
