"""The results of a command's runs as files."""

import errno
from dataclasses import dataclass, field
from pathlib import Path

from sightline.app.eval_targets import drawing
from sightline.cli.evals.fields import in_full
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
"""What a system says where a file may be written, and no other may take its place."""

NAMES = ("results.jsonl", "index.jsonl", "junit.xml", "summary.json")
"""What a folder of exports holds: our own lines, AgentV's, CI's, and the numbers of each target."""


@dataclass
class Exports:
    """`folder` gets all of them; `jsonl` and `junit` are files of their own."""

    folder: str = ""
    jsonl: str = ""
    junit: str = ""
    _results: list[CaseResult] = field(default_factory=list)
    _suites: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse places that cannot be written to before anything is asked of anybody."""
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
                    path.unlink()  # an empty file would look like results of nothing
            except OSError as error:
                raise unusable(place, error) from None

    def add(self, standing: EvalState) -> None:
        """The results of one more run."""
        self._results += standing.results
        self._suites.append(standing.began.suite.name)

    def write(self) -> None:
        """Write them all."""
        name = self._suites[0] if len(set(self._suites)) == 1 else ""
        # A large run takes a while to write down: only what somebody wants is.
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
    """All of it, or the file as it was."""
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
    """Whether it is a pipe or a device, which nothing can take the place of."""
    return path.parts[:2] == ("/", "dev") or (path.exists() and not path.is_file() and not path.is_dir())
