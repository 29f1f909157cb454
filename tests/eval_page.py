"""Evals in a browser: a folder with a suite, a server that knows it, and the command that runs it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.page_stage import PageStage, page_stage

CONFIG = """
[ask]
model = "acme/m"

[evals.targets.teacher]
model = "acme/m"

[evals.targets.parrot]
mock = "Hello from Rome and Madrid."
"""
SUITE = """# Capitals, as people ask for them.
name: capitals
tests:
  - id: france
    # The easy one.
    criteria: Greets, and knows France.
    input: What is the capital of France?
    expected_output: Hello
    assertions:
      - type: contains
        value: Hello
  - id: italy
    tags: [smoke]
    input:
      - role: system
        content: You are a teacher.
      - role: user
        content: What is the capital of Italy?
    assertions:
      - type: contains
        value: Rome
      - type: regex
        value: "^Hello"
  - id: spain
    input: And of Spain?
    assertions:
      - type: contains
        value: Madrid
"""
FILE = "evals/capitals.eval.yaml"
PROGRAM = (sys.executable, "-c", "from sightline.cli import main; raise SystemExit(main())")


@dataclass(frozen=True)
class Scene:
    """A server, and a folder with a suite beside its configuration."""

    stage: PageStage
    folder: Path

    @property
    def suite(self) -> Path:
        return self.folder / FILE

    def run(self, *more: str) -> str:
        """A person runs the suite on the command line: the run's id."""
        where = ("--config", str(self.folder / "sightline.toml"), "--data", str(self.folder / "data"))
        command = [*PROGRAM, "eval", "run", FILE, *more, *where]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False, timeout=60)
        assert done.returncode in (0, 1), done.stderr.decode()
        return self.stage.person.get("/api/evals")[0]["run"]

    def ready(self) -> "Scene":
        """The suite as it is here; nothing is held, and the provider says hello in a stream."""
        self.suite.write_text(SUITE)
        self.stage.clean()
        self.stage.person.put("/api/interception", {"mode": "off"})
        self.stage.desk.says(stream=True)
        return self

    def goto(self, page: Page, where: str) -> None:
        page.goto(f"{self.stage.desk.server.url}/#/evals{where}")


@contextmanager
def eval_scene(folder: Path) -> Iterator[Scene]:
    """All of it, in this folder."""
    (folder / "evals").mkdir()
    with page_stage(folder, "openai-chat", CONFIG) as stage:
        yield Scene(stage, folder)


def cell(page: Page, words: str) -> Locator:
    """A cell of the matrix by how it stands."""
    return page.get_by_role("link", name=re.compile(f"^{re.escape(words)}"))


def save(page: Page, before: str, after: str) -> None:
    """Look at what would change in the suite's file, and have it written."""
    dialog = page.get_by_role("dialog", name="Save in the suite")
    difference = dialog.get_by_role("group", name="Text difference")
    expect(difference.get_by_text("removed:")).to_have_count(1)
    expect(difference).to_contain_text(before)
    expect(difference).to_contain_text(after)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
