"""Graders of a repository's own: a type that nobody knows may be a script in a folder of AgentV's."""

from collections.abc import Generator, Sequence

import msgspec

from sightline.evals.core.graders.registry import GRADERS
from sightline.evals.core.graders.specs import RENAMED, kind_of
from sightline.evals.core.reading.paths import candidates, folder_of, refusal_of
from sightline.evals.core.reading.requests import Need
from sightline.evals.core.suite import Case, GraderSpec

FOLDERS = (".agentv/assertions", ".agentv/graders", ".agentv/judges")
ENDINGS = (".ts", ".js", ".mts", ".mjs")


def with_own_graders(cases: Sequence[Case], file: str) -> Generator[Need, bytes | None, tuple[Case, ...]]:
    """The cases, with each grader that is such a script as the command that runs it."""
    search = _Search(file)
    found: list[Case] = []
    for case in cases:
        graders = yield from search.commands(case.graders)
        turns = list(case.turns)
        for index, turn in enumerate(turns):
            turns[index] = msgspec.structs.replace(turn, graders=(yield from search.commands(turn.graders)))
        found.append(msgspec.structs.replace(case, graders=graders, turns=tuple(turns)))
    return tuple(found)


class _Search:
    def __init__(self, file: str) -> None:
        self._file = file
        self._known: dict[str, str] = {}

    def commands(self, specs: tuple[GraderSpec, ...]) -> Generator[Need, bytes | None, tuple[GraderSpec, ...]]:
        made: list[GraderSpec] = []
        for spec in specs:
            kind = kind_of(spec.type)
            script = ""
            if kind not in GRADERS and kind not in RENAMED:
                script = yield from self._script(kind)
            made.append(_command(spec, script) if script else spec)
        return tuple(made)

    def _script(self, kind: str) -> Generator[Need, bytes | None, str]:
        """Where the script lies, seen from the suite's folder, in which it is run; empty where there is none."""
        if kind not in self._known:
            self._known[kind] = ""
            if "/" not in kind and refusal_of(kind) is None:
                self._known[kind] = yield from self._find_script(kind)
        return self._known[kind]

    def _find_script(self, kind: str) -> Generator[Need, bytes | None, str]:
        for folder in FOLDERS:
            for ending in ENDINGS:
                for up, path in enumerate(_upwards(self._file, f"{folder}/{kind}{ending}")):
                    if (yield Need(path, "presence")) is not None:
                        return "../" * up + f"{folder}/{kind}{ending}"
        return ""


def _upwards(file: str, path: str) -> list[str]:
    """A path below the suite's folder, and below each folder above it."""
    found = list(candidates(file, path))
    assert len(found) == folder_of(file).count("/") + bool(folder_of(file)) + 1  # none leads out
    return found


def _command(spec: GraderSpec, script: str) -> GraderSpec:
    name = kind_of(spec.type) if spec.name in ("", spec.type) else spec.name
    config = {"command": ["bun", "run", script], "config": dict(spec.config)}
    return msgspec.structs.replace(spec, type="code-grader", name=name, config=config)
