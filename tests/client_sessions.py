"""Sessions of real clients, and how near the estimates of their requests come to what a provider counts.

A provider on this machine lets a client read ten files of many kinds, one in each turn. To record Codex, Claude Code,
Gemini CLI and opencode anew, as npm brings them: `TEST_CLIENTS=1 python -m tests.client_sessions`. The bodies are in
`contract/sessions/`; every prompt and description of the client's own is replaced by text of our guide of that length.
"""

import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from sightline.app.configuration import configuration
from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.dialects.dialect import Client
from sightline.dialects.registry import dialect
from sightline.exchange.memory import Memory
from sightline.exchange.request_counter import RequestCounter
from sightline.model.events import (
    ArgumentsReceived,
    Ended,
    Finished,
    Started,
    TextReceived,
    ToolCallBegun,
    ToolCallCompleted,
    UsageReceived,
)
from sightline.model.reply import Usage
from sightline.tokens.text_count import count_tokens
from tests.contract.loopback import Upstream
from tests.tiktoken_truth import true_count

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "contract" / "sessions"
READ = "Read the ten files of this folder one after the other, and say what is in each."
NAMES = ("notes.md", "estimate.py", "data.json", "blocks.sql", "letter.txt", "server.log", "costs.js", "table.csv")
COMMANDS = ("ls -la", *(f"cat {name}" for name in NAMES), "cat filters.md")
_OWN = "I look at the next file, number"


def fill(folder: Path) -> None:
    """Files of many kinds: prose, code, JSON, SQL, other scripts, a log, a table."""
    for name, source in (
        ("notes.md", "docs/guide/costs.md"),
        ("estimate.py", "src/sightline/tokens/estimate.py"),
        ("blocks.sql", "src/sightline/store/migrations/sqlite/004_blocks.sql"),
        ("costs.js", "src/sightline/ui/views/costs/costs.js"),
        ("filters.md", "docs/reference/filters.md"),
    ):
        shutil.copy(ROOT / source, folder / name)
    rows = [{"id": n, "name": f"item {n}", "price": round(n * 1.37, 2), "tags": ["a", "b"][: n % 3]} for n in range(60)]
    (folder / "data.json").write_text(json.dumps(rows, indent=1))
    said = "Zwölf Boxkämpfer jagen Viktor über den Deich. 敏捷的棕色狐狸跳过懒狗。 Съешь ещё этих булок. "
    (folder / "letter.txt").write_text(f"Sehr geehrte Damen und Herren,\n\n{said * 12}\n")
    lines = [
        f"2026-11-16T10:{n // 60:02}:{n % 60:02}.{n * 37 % 1000:03}Z request=x_{n * 7919:012x} status=200"
        for n in range(80)
    ]
    (folder / "server.log").write_text("\n".join(lines))
    table = [
        f"2026-11-{1 + n % 28:02},model-{n % 5},{n * 131 % 9973},{n * 17 % 613},{n * 0.00137:.6f}" for n in range(90)
    ]
    (folder / "table.csv").write_text("\n".join(table))


class ReadingModel(Upstream):
    """A model that reads the files, one in each turn, with the client's `tool`; `arguments` are those of a command."""

    def __init__(self, spoken: str, tool: str, arguments: Callable[[str], dict[str, Any]]) -> None:
        super().__init__(dialect(spoken), Client(id="r1", model="scripted"))
        self._tool, self._arguments = tool, arguments

    def answer_to(self, path: str, body: Any) -> tuple[int, str, bytes]:
        text, name = json.dumps(body), f"r{len(self.bodies) + 1}"
        done = len(set(re.findall(r"step-(\d+)-is-done", text)))
        usage = UsageReceived(Usage(input_tokens=11, output_tokens=5))
        if f'"{self._tool}"' not in text:  # some ask for a title beside the task
            self.events = [Started(name), TextReceived(0, '{"title": "A task"}'), usage, Finished("stop"), Ended()]
        elif done == len(COMMANDS):
            self.events = [Started(name), TextReceived(0, "All ten are read."), usage, Finished("stop"), Ended()]
        else:
            command = f"{COMMANDS[done]}; printf 'step-%s-is-done' {done + 1}"
            self.events = [
                Started(name),
                TextReceived(0, f"{_OWN} {done + 1}."),
                ToolCallBegun(1, f"call_{done + 1}", self._tool),
                ArgumentsReceived(1, json.dumps(self._arguments(command))),
                ToolCallCompleted(1),
                usage,
                Finished("tool_calls"),
                Ended(),
            ]
        return super().answer_to(path, body)

    @property
    def session(self) -> list[Any]:
        """The requests of the task, without what was asked beside it."""
        return [body for body in self.bodies if f'"{self._tool}"' in json.dumps(body)]


# --- what a provider counts -------------------------------------------------------------------------

MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-responses": "openai/gpt-5.5",
    "gemini": "gemini/gemini-2.5-flash",
}
VOCABULARIES = {
    # Anthropic's is not public: three that are play it, none of which the estimates know of.
    "anthropic": ("llama3", "qwen3", "mistral_v3"),
    "openai-responses": ("o200k_base",),
    "gemini": ("gemma3",),
}
FOREIGN = ("llama3", "qwen3", "mistral_v3", "smollm2")
"""Vocabularies of other makers: a provider that counts by one of them is not what the catalogue says of it, and only
its counts can tell. The last is that of the embedded model, which is small and knows little but English."""
HIDDEN = (0, 1_200)
"""Tokens that a provider says to the model unseen."""
_AROUND_A_MESSAGE = 4
_PROMPT = ("system", "messages", "instructions", "input", "contents", "systemInstruction", "system_instruction")
_TEXTS = ("text", "content", "output", "arguments", "parts", "role", "name")


def provider_count(body: Any, vocabulary: str, hidden: int) -> int:
    """The tokens of a request at a provider with this vocabulary, which puts tools, calls and results into the prompt
    as JSON, in its own way and not as the estimates do."""
    texts = [json.dumps(body.get("tools", []), ensure_ascii=False)]

    def walk(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            for each in value:
                walk(each)
        elif isinstance(value, dict):
            if value.get("type") == "tool_use" or "functionCall" in value or "functionResponse" in value:
                plain = {name: each for name, each in value.items() if name != "cache_control"}
                texts.append(json.dumps(plain, ensure_ascii=False))
            else:
                walk([each for name, each in value.items() if name in _TEXTS])

    walk([body[name] for name in _PROMPT if name in body])
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    return sum(_count(vocabulary, text) for text in texts) + _AROUND_A_MESSAGE * len(messages) + hidden


@cache
def _count(vocabulary: str, text: str) -> int:
    """By OpenAI's own program where the vocabulary is OpenAI's, so that its count is not ours."""
    return true_count(vocabulary, text) if vocabulary == "o200k_base" else count_tokens(vocabulary, text)


@dataclass(frozen=True, slots=True)
class Measured:
    """An estimate that was made before a request was sent, and what the provider then counted."""

    low: int
    tokens: int
    high: int
    counted: int

    @property
    def holds(self) -> bool:
        """Whether the band held the count."""
        return self.low <= self.counted <= self.high

    @property
    def error(self) -> float:
        """How far off the likely number was, as a share."""
        return abs(self.tokens / self.counted - 1)


@cache
def _catalog() -> Catalog:
    return configuration(None).catalog


def measure(spoken: str, bodies: Sequence[Any], vocabulary: str, hidden: int) -> list[Measured]:
    """Each request of a session, estimated after all before it were counted. Nothing is known before the first."""
    with tempfile.TemporaryDirectory() as folder:
        counter = RequestCounter(Memory(Path(folder), lambda: 0.0))
        choice = choose(_catalog(), MODELS[spoken], has_key=lambda _provider: True, arriving=spoken)  # type: ignore[arg-type]
        found = []
        for body in bodies:
            request = dialect(spoken).read_request(body)
            estimate, counted = counter.estimate(choice, request), provider_count(body, vocabulary, hidden)
            found.append(Measured(estimate.low, estimate.tokens, estimate.high, counted))
            counter.learn(choice, request, Usage(input_tokens=counted, output_tokens=5))
    return found


def measure_all(
    spoken: str, bodies: Sequence[Any], vocabularies: Sequence[str] = (), *, after: int = 5
) -> list[Measured]:
    """The same for each vocabulary that the provider may have, from the turn on that comes after so many."""
    names = vocabularies or VOCABULARIES[spoken]
    runs = [measure(spoken, bodies, name, hidden) for name in names for hidden in HIDDEN]
    return [each for run in runs for each in run[after:]]


# --- keeping sessions -------------------------------------------------------------------------------


class Session(msgspec.Struct, frozen=True):
    """The requests of a task, as a client sent them."""

    client: str
    dialect: str
    bodies: list[Any]


_KEPT = (*_PROMPT, "model", "tools", "reasoning", "thinking", "output_config", "text", "generationConfig", "max_tokens")
_SHORT = 40
_OURS = ("is-done", _OWN, READ)


def redact(bodies: Sequence[Any]) -> list[Any]:
    """The bodies with words of ours in place of the client's own: what it says to the model, and says of its tools."""
    guide = " ".join(path.read_text() for path in sorted((ROOT / "docs" / "guide").glob("*.md")))
    put: dict[str, str] = {}
    chance = random.Random(1)

    def ours(text: str) -> str:
        if len(text) <= _SHORT or any(mark in text for mark in _OURS):
            return text
        if text not in put:
            start = chance.randrange(len(guide))
            put[text] = (guide[start:] + guide * (1 + len(text) // len(guide)))[: len(text)]
        return put[text]

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return ours(value)
        if isinstance(value, list):
            return [walk(each) for each in value]
        return {name: walk(each) for name, each in value.items()} if isinstance(value, dict) else value

    return [walk({name: value for name, value in body.items() if name in _KEPT}) for body in bodies]


def load_sessions() -> list[Session]:
    """The sessions that are kept."""
    opened = (zstandard.ZstdDecompressor().decompress(path.read_bytes()) for path in sorted(FOLDER.glob("*.zst")))
    return [msgspec.json.decode(data, type=Session) for data in opened]


def keep(session: Session) -> None:
    """Put it beside the others."""
    FOLDER.mkdir(exist_ok=True)
    kept = Session(session.client, session.dialect, redact(session.bodies))
    name = f"{session.client.replace(' ', '_')}.json.zst"
    (FOLDER / name).write_bytes(zstandard.ZstdCompressor(level=19).compress(msgspec.json.encode(kept)))


def main() -> None:
    """Record all sessions anew."""
    from tests.e2e.test_clients import RECORDED, find_clients, record_session

    for name in RECORDED:
        with tempfile.TemporaryDirectory() as folder:
            keep(record_session(find_clients(), Path(folder), name))


if __name__ == "__main__":
    main()
