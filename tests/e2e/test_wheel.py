"""The wheel is whole: in an empty environment, away from the sources, it does what the README shows first."""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.local_model import needs_model

ROOT = Path(__file__).parents[2]


SDK = """
import openai
client = openai.OpenAI()
answer = client.chat.completions.create(model="local", messages=[{"role": "user", "content": "Hi"}], max_tokens=4)
print("the SDK got", answer.choices[0].message.content)
"""


class Installed:
    """An environment that has the wheel and what it depends on, and nothing else: no compiler, and no checkout."""

    def __init__(self, folder: Path, lent: dict[str, str]) -> None:
        self.folder = folder
        self.bin = folder / "environment" / "bin"
        kept = {
            name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and name != "PYTHONPATH"
        }
        commands = folder / "commands"
        commands.mkdir()
        for name in ("env", "sh"):
            (commands / name).symlink_to(shutil.which(name) or "")
        self.environment = {
            **kept,
            **lent,
            "PATH": os.pathsep.join(map(str, (self.bin, commands))),
            "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "home" / "config"),
            "SIGHTLINE_DATA": str(folder / "data"),
            "SIGHTLINE_SERVER_PORT": "0",
        }

    def run(self, *words: str) -> str:
        """What a command of the environment prints; it must succeed."""
        command = [str(self.bin / words[0]), *words[1:]]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def lent() -> Iterator[dict[str, str]]:
    """The embedded model of the tests' own environment, lent to the other one."""
    command = [str(Path(sys.executable).parent / "sightline"), "local"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as lender:
        try:
            assert lender.stdout is not None
            lines = [lender.stdout.readline() for _ in range(2)]
            yield dict(line.removeprefix("export ").strip().split("=", 1) for line in lines)
        finally:
            lender.kill()


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory, lent: dict[str, str]) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    venv.create(folder / "environment")
    (wheel,) = (folder / "dist").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "environment/bin/python")]
    command = [*pip, "install", "-q", "--no-deps", "--no-index", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    link_dependencies(next((folder / "environment/lib").glob("python*/site-packages")))
    return Installed(folder, lent)


def link_dependencies(site: Path) -> None:
    """Lend what the wheel there says that it needs, with all that this needs, the SDK and pip; and nothing else. To
    install it anew took half of the test."""
    (wheel,) = distributions(path=[str(site)])
    waiting = [*needs(wheel, ()), Requirement("openai"), Requirement("pip")]
    linked: set[tuple[str, ...]] = set()
    while waiting:
        wanted = waiting.pop()
        found = distribution(wanted.name)
        if (key := (wanted.name, *sorted(wanted.extras))) not in linked:
            linked.add(key)
            waiting += needs(found, wanted.extras)
            for file in found.files or ():
                if file.parts[0] != "..":
                    link(Path(str(found.locate_file(""))), site, file.parts)


def needs(found: Distribution, extras: Collection[str]) -> list[Requirement]:
    """What it requires here, with these extras."""
    required = [Requirement(line) for line in found.requires or ()]
    chosen = [{"extra": extra} for extra in ("", *extras)]
    return [each for each in required if not each.marker or any(map(each.marker.evaluate, chosen))]


def link(source: Path, site: Path, parts: tuple[str, ...]) -> None:
    """Link a file, or the whole package that it is in."""
    depths = (n for n in range(1, len(parts)) if source.joinpath(*parts[:n], "__init__.py").exists())
    place = parts[: next(depths, len(parts))]
    target = site.joinpath(*place)
    if not target.exists() and source.joinpath(*place).exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source.joinpath(*place))


@needs_model
def test_from_the_first_answer_to_the_end_from_the_wheel_alone(installed: Installed) -> None:
    use(installed)
    open_page(installed)
    uninstall(installed)


def use(installed: Installed) -> None:
    """The README's first things, an SDK and an eval."""
    assert "environment" in installed.run("python", "-c", "import sightline; print(sightline.__file__)")
    installed.run("sightline", "examples", "examples")
    assert installed.run("sightline", "ask", "Say hello in one short sentence.", "--max-tokens", "8")
    assert installed.run("sightline", "run", "--", str(installed.bin / "python"), "examples/client.py")
    (installed.folder / "sdk.py").write_text(SDK)
    assert "the SDK got" in installed.run("sightline", "run", "--session", "sdk", "--", "python", "sdk.py")
    assert "OpenAI" in installed.run("sightline", "traffic", "session:sdk")
    assert "local" in installed.run("sightline", "traffic", "model:* & age<1h")
    assert installed.run("sightline", "harness", "examples/harness.json")
    wire = installed.run(
        "sightline", "ask", "-m", "gpt-4o", "--tools", "examples/tools.py", "--dry-run", "--as", "wire", "Hi"
    )
    assert '"tools"' in wire
    assert "100 %" in installed.run("sightline", "eval", "run", "examples/evals/support.eval.yaml")
    assert "as this version uses it" in installed.run("sightline", "upgrade", "check")


def open_page(installed: Installed) -> None:
    """The page and every file that it names."""
    command = [str(installed.bin / "sightline"), "chat", "--no-open"]
    with subprocess.Popen(
        command, cwd=installed.folder, env=installed.environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            link = server.stdout.readline()
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with opener.open(link, timeout=30) as page:
                text = page.read().decode()
            assert "<title>" in text
            root = link.partition("/?")[0]
            files = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', text)
            assert files
            for file in files:
                with opener.open(root + file, timeout=30) as answer:
                    assert answer.read()
        finally:
            server.terminate()


def uninstall(installed: Installed) -> None:
    """Everything that Sightline has put anywhere is gone."""
    listed = installed.run("sightline", "uninstall")
    assert f"data      {installed.folder / 'data'}  (" in listed
    installed.run("sightline", "uninstall", "--remove", "all", "--yes")
    assert not (installed.folder / "data").exists()
    assert not (installed.bin / "sightline").exists()
    assert "NO" in installed.run("python", "-c", "import importlib.util as u; print(u.find_spec('sightline') or 'NO')")
