"""Who is compared: how each tool is had, what it is given, and what it says of the outcome.

Each gets the same cases in the form that its own documentation shows first, asks as many at once as the others, and
keeps its results on disk as it does by itself. What it would take from a cache, or tell its makers, is turned off.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from bench.peers import workshop
from bench.peers.scenarios import KEY

AT_ONCE = 32
MODEL = "bench-whole"
# It is in every answer of the upstream.
WORD = "word"
INSPECT = ("inspect_ai==0.3.285", "openai==3.49.0")
# It needs a newer Node than many systems have; the package of that name is the program itself.
PROMPTFOO = {"promptfoo": "0.123.1", "node": "22.23.3"}


@dataclass(frozen=True)
class Launch:
    """How a run is started, and how many cases passed by what it left behind: its output is in the file."""

    command: list[str]
    passed: Callable[[Path], int]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """One tool. `launch` gets an empty folder, how many cases there are and the upstream's address."""

    name: str
    about: str
    version: str
    launch: Callable[[Path, int, str], Launch]


def question(number: int) -> str:
    """What is asked: the same question twice would be stored once."""
    return f"Say a word about number {number}."


# --- Sightline --------------------------------------------------------------------------------------------------

SIGHTLINE = """\
[providers.bench]
dialect = "openai-chat"
base_url = "{upstream}"
"""
SIGHTLINE_CASE = """\
  - id: case-{number}
    criteria: The answer has the word
    input: {question}
    assertions:
      - type: contains
        value: {word}
"""


def _launch_sightline(folder: Path, cases: int, upstream: str) -> Launch:
    config, suite = folder / "sightline.toml", folder / "bench.eval.yaml"
    config.write_text(SIGHTLINE.format(upstream=upstream))
    each = (SIGHTLINE_CASE.format(number=number, question=question(number), word=WORD) for number in range(cases))
    suite.write_text("name: bench\ntests:\n" + "".join(each))
    program = str(Path(sys.executable).with_name("sightline"))
    options = ["--target", f"bench/{MODEL}", "--workers", str(AT_ONCE), "--no-cache", "--json"]
    places = ["--config", str(config), "--data", str(folder / "data")]
    return Launch([program, "eval", "run", str(suite), *options, *places], _passed_sightline)


def _passed_sightline(output: Path) -> int:
    told = json.loads(output.read_text().splitlines()[-1])
    return sum(int(target["passed"]) for target in told["targets"])


# --- inspect_ai -------------------------------------------------------------------------------------------------

INSPECT_TASK = """\
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def bench() -> Task:
    return Task(dataset=json_dataset("cases.jsonl"), solver=generate(), scorer=includes())
"""


def _launch_inspect(folder: Path, cases: int, upstream: str) -> Launch:
    program = str(workshop.environment("inspect", *INSPECT) / "inspect")
    (folder / "bench.py").write_text(INSPECT_TASK)
    lines = ({"id": number, "input": question(number), "target": WORD} for number in range(cases))
    (folder / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["--model", f"openai-api/bench/{MODEL}", "--display", "none"]
    limits = ["--max-connections", str(AT_ONCE), "--max-samples", str(AT_ONCE)]
    environment = {
        "BENCH_BASE_URL": upstream,
        "BENCH_API_KEY": KEY,
        "INSPECT_LOG_DIR": str(folder / "logs"),
        "XDG_DATA_HOME": str(folder / "share"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }

    def passed(_output: Path) -> int:
        log = next((folder / "logs").glob("*.eval"))
        done = subprocess.run([program, "log", "dump", "--header-only", str(log)], capture_output=True, check=True)
        results = json.loads(done.stdout)["results"]
        accuracy = float(results["scores"][0]["metrics"]["accuracy"]["value"])
        return round(int(results["completed_samples"]) * accuracy)

    return Launch([program, "eval", "bench.py", *options, *limits], passed, environment)


# --- promptfoo --------------------------------------------------------------------------------------------------

PROMPTFOO_SUITE = """\
description: bench
prompts:
  - "{{{{question}}}}"
providers:
  - id: openai:chat:{model}
    config:
      apiBaseUrl: {upstream}
      apiKey: {key}
tests:
"""
PROMPTFOO_CASE = """\
  - vars:
      question: {question}
    assert:
      - type: contains
        value: {word}
"""


def _launch_promptfoo(folder: Path, cases: int, upstream: str) -> Launch:
    script = workshop.node_program(
        "node_modules/promptfoo/dist/src/entrypoint.js", PROMPTFOO, overrides={}, name="promptfoo"
    )
    suite = folder / "promptfooconfig.yaml"
    each = (PROMPTFOO_CASE.format(question=question(number), word=WORD) for number in range(cases))
    suite.write_text(PROMPTFOO_SUITE.format(model=MODEL, upstream=upstream, key=KEY) + "".join(each))
    options = ["--no-cache", "--max-concurrency", str(AT_ONCE), "--no-table", "--no-progress-bar"]
    environment = {
        "PROMPTFOO_CONFIG_DIR": str(folder / "results"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "NODE_ENV": "production",
    }
    node = script.parents[3] / "node/bin/node"
    return Launch([str(node), str(script), "eval", "-c", str(suite), *options], _passed_promptfoo, environment)


def _passed_promptfoo(output: Path) -> int:
    found = re.search(r"([\d,]+) passed", output.read_text())
    return int(found[1].replace(",", "")) if found else 0


SIGHTLINE_TOOL = Tool(
    "sightline",
    "every exchange on record, results in SQLite",
    f"{version('sightline')}, Python {sys.version.split()[0]}",
    _launch_sightline,
)
TOOLS = (
    SIGHTLINE_TOOL,
    Tool("inspect_ai", "its log on disk", f"{INSPECT[0].partition('==')[2]}, the same Python", _launch_inspect),
    Tool(
        "promptfoo",
        "its results in SQLite",
        f"{PROMPTFOO['promptfoo']}, Node {PROMPTFOO['node']}",
        _launch_promptfoo,
    ),
)
