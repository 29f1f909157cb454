"""Exports the results of runs to files."""

import errno
from dataclasses import dataclass, field
from pathlib import Path

from sightline.app.eval_targets import drawing
from sightline.cli.evals.report import in_full
from sightline.cli.terminal import unusable
from sightline.evals.core.exports.agentv_index import to_index
from sightline.evals.core.exports.jsonl import to_jsonl
from sightline.evals.core.exports.junit import to_junit
from sightline.evals.core.result import CaseResult
from sightline.evals.core.run_state import EvalState
from sightline.evals.core.summary import summarize
from sightline.evals.service.suite_writing import replace_file
from sightline.wire.jsontext import encode

_NOT_REPLACED = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EXDEV)
"""Errors that mean a file can be written but not replaced."""

NAMES = ("results.jsonl", "index.jsonl", "junit.xml", "summary.json")
"""The files of an export folder: our own JSONL, AgentV's, JUnit for CI, and the figures of each target."""


@dataclass
class Exports:
    """The requested exports. `folder` gets all files; `jsonl` and `junit` are single files."""

    folder: str = ""
    jsonl: str = ""
    junit: str = ""
    _results: list[CaseResult] = field(default_factory=list)
    _suites: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise a fault if a destination cannot be written, before anything is sent."""
        for place in filter(None, (self.folder and f"{self.folder}/{NAMES[0]}", self.jsonl, self.junit)):
            path = Path(place)
            if _is_stream(path):
                continue
            try:
                path = path.resolve()
                path.parent.mkdir(parents=True, exist_ok=True)
                is_new = not path.exists()
                with path.open("ab"):
                    pass
                if is_new:
                    path.unlink()  # an empty file would look like empty results
            except OSError as error:
                raise unusable(place, error) from None

    def add(self, standing: EvalState) -> None:
        """Add the results of a run."""
        self._results += standing.results
        self._suites.append(standing.began.suite.name)

    def write(self) -> None:
        name = self._suites[0] if len(set(self._suites)) == 1 else ""
        # Rendering a large run is slow, so only requested exports are rendered.
        lines = to_jsonl(self._results) if self.jsonl or self.folder else b""
        tests = to_junit(self._results, name=name) if self.junit or self.folder else b""
        if self.jsonl:
            _write(self.jsonl, lines)
        if self.junit:
            _write(self.junit, tests)
        if self.folder:
            summaries = in_full(summarize(self._results, drawing()))
            contents = (lines, to_index(self._results), tests, encode(summaries) + b"\n")
            for each, content in zip(NAMES, contents, strict=True):
                _write(f"{self.folder}/{each}", content)


def _write(place: str, data: bytes) -> None:
    """Write a file atomically."""
    path = Path(place)
    try:
        if _is_stream(path):
            with path.open("ab") as stream:
                stream.write(data)
            return
        try:
            replace_file(path.resolve(), data)
        except OSError as error:
            if error.errno not in _NOT_REPLACED:
                raise
            path.write_bytes(data)
    except OSError as error:
        raise unusable(place, error) from None


def _is_stream(path: Path) -> bool:
    """Whether the path is a pipe or device, which cannot be replaced by a file."""
    return path.parts[:2] == ("/", "dev") or (path.exists() and not path.is_file() and not path.is_dir())
