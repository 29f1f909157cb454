"""The library's front door: what `import sightline` gives, and what it does not load."""

import json
import subprocess
import sys

import pytest

import sightline


def test_every_exported_name_is_there() -> None:
    for name in sightline.__all__:
        assert getattr(sightline, name) is not None


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = sightline.nonsense


def test_help_loads_neither_codecs_nor_dialects() -> None:
    """Help must come at once, so nothing heavy may be imported for it."""
    program = "import sys; from sightline.cli import main; main(['--help'])"
    report = (
        "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    )
    done = subprocess.run([sys.executable, "-c", report + program], capture_output=True, check=True)
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert "argparse" in loaded
    heavy = [name for name in loaded if name.startswith(("msgspec", "sightline.model", "sightline.wire"))]
    assert not heavy
