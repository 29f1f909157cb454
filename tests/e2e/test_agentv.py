"""The same suites through the real AgentV and through Sightline, against one upstream that remembers what it was sent.

AgentV is fetched by npm into the user's cache: TEST_CLIENTS=1 says that it may. Deterministic verdicts must agree, and
each way in which the requests may differ stands in `explained`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.background import upstream_in_background
from tests.eval_stage import words_in
from tests.loop_stage import says
from tests.running_stage import plays
from tests.server_process import PROGRAM
from tests.upstream import Talk, Upstream

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_CLIENTS") != "1", reason="fetches and runs AgentV; TEST_CLIENTS=1 allows it"
)

VERSION = "4.42.4"
SUITES = Path(__file__).parent / "agentv_suites"
NAMES = ("basic", "losses", "live", "composite", "trajectory", "other_words")
SENTENCE = "You are a careful assistant. Follow all provided instructions and do not fabricate results."
ANSWERS = {
    "my name?": "Your name is Ada.",
    "My name is": "Hello Ada.",
    "JSON": '{"city": "Paris", "people": 2000000}',
    "France": "Paris",
    "Italy": "Rome",
    "Spain": "Toledo",
}

Messages = list[dict[str, Any]]


@pytest.fixture(scope="module")
def agentv() -> Path:
    """The program, which is kept between runs."""
    if shutil.which("npm") is None:
        pytest.skip("AgentV is installed by npm, which is not here")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"sightline-agentv-{VERSION}"
    found = cache / "node_modules" / ".bin" / "agentv"
    if not found.exists():
        cache.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--prefix", str(cache), "--no-audit", "--no-fund", f"agentv@{VERSION}"]
        done = subprocess.run(install, cwd=cache, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"npm could not install AgentV: {done.stderr.strip()[-300:]}")
    return found


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with upstream_in_background() as upstream:

        async def model(talk: Talk) -> None:
            body = upstream.seen[-1].json()
            users = [each for each in body["messages"] if each["role"] == "user"]
            asked = words_in({"messages": users[-1:]})
            text = next((answer for word, answer in ANSWERS.items() if word in asked), "I do not know.")
            await plays(says(text), stream=bool(body.get("stream")))(talk)

        upstream.script = [model]
        yield upstream


@dataclass
class Ran:
    """What one program made of a suite: its rows by case, and the messages that it sent, in their order."""

    rows: dict[str, dict[str, Any]]
    sent: list[Messages] = field(default_factory=list)

    def verdicts(self) -> dict[str, tuple[str, float, list[tuple[str, float, str]]]]:
        return {
            name: (
                row["execution_status"],
                round(row["score"], 6),
                [(each["name"], round(each["score"], 6), each["verdict"]) for each in row.get("scores", ())],
            )
            for name, row in self.rows.items()
        }


def ran(upstream: Upstream, words: list[str], folder: Path, output: Path) -> Ran:
    before = len(upstream.seen)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "UPSTREAM_URL": f"{upstream.url}/v1",
        "UPSTREAM_KEY": "sk-of-the-tests-1234",
        "UPSTREAM_MODEL": "m",
        "SIGHTLINE_DATA": str(folder / "data"),
    }
    done = subprocess.run(
        words, cwd=folder / "evals", env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (output / "index.jsonl").exists(), done.stdout + done.stderr
    rows = map(json.loads, (output / "index.jsonl").read_text().splitlines())
    return Ran({row["test_id"]: row for row in rows}, [each.json()["messages"] for each in upstream.seen[before:]])


@pytest.fixture(scope="module")
def both(agentv: Path, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ran, Ran]]:
    """Both programs on all suites, one case at a time so that requests come in the same order."""
    found: dict[str, tuple[Ran, Ran]] = {}
    for name in NAMES:
        folder = tmp_path_factory.mktemp(name)
        shutil.copytree(SUITES, folder / "evals")
        (folder / ".git").mkdir()
        suite, theirs, ours = f"{name}.eval.yaml", folder / "theirs", folder / "ours"
        asking = [str(agentv), "eval", "run", suite, "-o", str(theirs), "--max-retries", "0", "--workers", "1"]
        using = [*PROGRAM, "eval", "run", suite, "--output", str(ours), "--no-cache", "--workers", "1"]
        found[name] = ran(upstream, asking, folder, theirs), ran(upstream, using, folder, ours)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_deterministic_verdicts_agree(both: dict[str, tuple[Ran, Ran]], name: str) -> None:
    theirs, ours = both[name]
    assert theirs.rows
    assert ours.verdicts() == theirs.verdicts()


@pytest.mark.parametrize("name", NAMES)
def test_each_difference_between_the_requests_is_explained(both: dict[str, tuple[Ran, Ran]], name: str) -> None:
    theirs, ours = both[name]
    assert [as_agentv_sends(each) for each in ours.sent] == [without_sentence(each) for each in theirs.sent]


def without_sentence(messages: Messages) -> Messages:
    """AgentV adds a sentence of its own where a case has no system message."""
    first = messages[0]
    return messages[1:] if (first["role"], first["content"]) == ("system", SENTENCE) else messages


def as_agentv_sends(messages: Messages) -> Messages:
    """Our messages with all that AgentV is known to do to such: systems at the beginning are joined, later ones and
    results of tools become words of the assistant, calls of tools are dropped, and files of the only message are parted
    by a blank line."""
    systems = 0
    while messages[systems]["role"] == "system":
        systems += 1
    joined = "\n\n".join(each["content"] for each in messages[:systems])
    found: Messages = [{"role": "system", "content": joined}] if systems else []
    for each in messages[systems:]:
        if each["role"] in ("system", "tool"):
            marker = f"@[{each['role'].title()}]:"
            found.append({"role": "assistant", "content": f"{marker}\n{each['content']}"})
        elif each["content"]:
            found.append({"role": each["role"], "content": each["content"]})
    if len(found) == 1:
        found[0]["content"] = found[0]["content"].replace("</file>\n", "</file>\n\n")
    return found
