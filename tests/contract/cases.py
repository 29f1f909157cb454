"""The wire cases as the laws see them: every folder below tests/wire_cases, by dialect and name."""

from dataclasses import dataclass
from pathlib import Path

from sightline.dialects.registry import NAMES

ROOT = Path(__file__).parents[1] / "wire_cases"
PROVIDERS = tuple(name for name in NAMES if name != "raw")


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded shape: a request, a reply, the stream of that reply, or any of them."""

    dialect: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.dialect}-{self.folder.name}"

    def file(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def cases(*files: str) -> list[Case]:
    """The cases that have all of these files."""
    return [
        Case(dialect.name, folder)
        for dialect in sorted(path for path in ROOT.iterdir() if path.is_dir())
        for folder in sorted(dialect.iterdir())
        if all((folder / name).exists() for name in files)
    ]


def others(dialect: str) -> list[str]:
    """The dialects that this one can be translated to."""
    return [name for name in NAMES if name != dialect]
