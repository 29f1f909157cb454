"""Make the example that the page shows before there is any traffic: `python -m tools.example`.

A small coding agent, written here, fixes a bug in a small project through a real Sightline. A model on loopback plays
its part by `example_script`; the tools really run. Around it are a translated client, a request that was held and
edited, one that was tried again, replays, a chat with a run of tools, and evals. What Sightline recorded of all that
becomes `src/sightline/app/example.jsonl.zst`. Every text in it is ours.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import zstandard

from sightline.app.example import FILE, ExampleHeading, LogLine
from sightline.filters.parsing import parse
from sightline.model.reply import Usage
from sightline.store.entries import BodyEntry, Entry, FactEntry
from sightline.store.sqlite import open_store
from sightline.testing.script import Script, ScriptedRound
from sightline.workbench.exchanges import DocumentToOpen
from tests.gateway_server import Served, served
from tests.person import Person
from tools.example_script import (
    AGENT,
    CASES,
    CHARACTERS_IN_A_TOKEN,
    CHAT,
    EXPLAIN,
    FIRST,
    HELD,
    HOME,
    KITCHEN,
    LARGE,
    OTHER,
    PROJECT,
    REMINDER,
    REVIEW,
    REVIEWER,
    SECOND,
    SESSION,
    SMALL,
    STATUS,
    SUITE,
    SUMMARY,
    SYSTEM,
    TITLE,
    TOOLS,
)

# --- the model ---------------------------------------------------------------------------------------


class Model(BaseHTTPRequestHandler):
    """Plays all models. What it answers depends on the request alone, so that requests may come in any order."""

    protocol_version = "HTTP/1.1"
    before: ClassVar[dict[str, list[bytes]]] = {}
    tried: ClassVar[set[bytes]] = set()

    def do_POST(self) -> None:
        """One request."""
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        dialect = "anthropic" if self.path.endswith("/messages") else "openai-responses"
        if SUMMARY in raw.decode() and raw not in self.tried:
            self.tried.add(raw)
            self._answer(529, b'{"error":{"type":"overloaded_error","message":"Overloaded"}}', "application/json")
            return
        script = Script((ScriptedRound(deltas=tuple(answer_to(body)), usage=self._usage(raw, body)),))
        time.sleep(0.3 + len(json.dumps(answer_to(body))) / 300)  # as long as a quick model takes
        if body.get("stream"):
            data, kind = b"".join(script.pieces(0, dialect)), "text/event-stream"
        else:
            data, kind = script.whole(0, dialect), "application/json"
        turns = len(body.get("messages") or body["input"])
        names = {b'"scripted"': json.dumps(body["model"]).encode(), b"call_1_": f"call_{turns}_".encode()}
        for scripted, shown in names.items():
            data = data.replace(scripted, shown)
        self._answer(200, data, kind)

    def _usage(self, raw: bytes, body: dict[str, Any]) -> Usage:
        """As a provider counts: what a request shares with one before it is read from the cache."""
        known = self.before.setdefault(body["model"], [])
        shared = max((shared_length(raw, each) for each in known), default=0)
        known.append(raw)
        total, cached = (int(size / CHARACTERS_IN_A_TOKEN) for size in (len(raw), shared))
        cached = cached if cached >= 1024 and '"cache_control"' in raw.decode() else 0
        written = total - cached - 40 if '"cache_control"' in raw.decode() else None
        answer = len(json.dumps(answer_to(body)))
        return Usage(
            input_tokens=total,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=max(4, int(answer / CHARACTERS_IN_A_TOKEN)),
        )

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def shared_length(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def answer_to(body: dict[str, Any]) -> list[Any]:
    """What the model says to this request."""
    turns = body.get("messages") or body.get("input")
    words = json.dumps(turns)
    if body.get("system") == TITLE:
        return ["Fractions in ingredient lines"]
    if SUMMARY in words:
        return ["The parser of ingredient lines now reads fractions and mixed amounts."]
    if EXPLAIN in words:
        return ["It gives off gas when it gets wet and warm, which makes the cake light."]
    system = json.dumps(body.get("system", ""))
    if "You review one change" in system:
        return REVIEW[sum(turn["role"] == "assistant" for turn in turns)]
    if "careful programming agent" in system:
        return AGENT[min(sum(turn.get("role") == "assistant" for turn in turns), len(AGENT) - 1)]
    if "raises a ValueError" in words:  # the same conversation, replayed on a model of another API
        kinds = [turn.get("type") for turn in turns]
        return AGENT[sum(kind != "function_call_output" == before for before, kind in pairwise([*kinds, None]))]
    for question, large, small in CASES.values():
        if question in words:
            return [large if body["model"] == LARGE else small]
    asked = max(CHAT, key=lambda each: words.rfind(each))
    results = sum(turn.get("type") == "function_call_output" for turn in turns)
    return CHAT[asked][min(results, len(CHAT[asked]) - 1)]


@contextmanager
def model_on_loopback() -> Iterator[str]:
    """The model's address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- the agent -----------------------------------------------------------------------------------------


class Agent:
    """A small agent that speaks the Messages API, in a folder with the project."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.messages: list[dict[str, Any]] = []
        self.tree = "clean"

    def ask(self, words: str, *, model: str = LARGE, system: str = SYSTEM) -> str:
        """Ask, and use tools until there is an answer: its text."""
        reminders = [{"type": "text", "text": REMINDER}] if system == SYSTEM else []
        self.messages.append({"role": "user", "content": [*reminders, {"type": "text", "text": words}]})
        while True:
            reply = self._send(model, system)
            self.messages.append({"role": "assistant", "content": reply["content"]})
            calls = [part for part in reply["content"] if part["type"] == "tool_use"]
            if not calls:
                return "".join(part["text"] for part in reply["content"] if part["type"] == "text")
            results = [{"type": "tool_result", "tool_use_id": each["id"], "content": self._use(each)} for each in calls]
            self.messages.append({"role": "user", "content": results})

    def _send(self, model: str, system: str) -> Any:
        marked = {"type": "text", "text": STATUS.format(tree=self.tree), "cache_control": {"type": "ephemeral"}}
        messages = json.loads(json.dumps(self.messages))
        messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        body = {
            "model": model,
            "max_tokens": 8192,
            "tools": TOOLS,
            "system": [{"type": "text", "text": system}, marked],
            "messages": messages,
        }
        return send(f"{self.url}/s/{SESSION}/v1/messages", body)

    def _use(self, wanted: dict[str, Any]) -> str:
        given = wanted["input"]
        match wanted["name"]:
            case "Read":
                lines = (self.folder / given["path"]).read_text().splitlines()
                return "\n".join(f"{number:4}  {line}" for number, line in enumerate(lines, 1))
            case "Edit":
                path = self.folder / given["path"]
                text = path.read_text()
                if text.count(given["old"]) != 1:
                    return f"error: the text occurs {text.count(given['old'])} times"
                path.write_text(text.replace(given["old"], given["new"]))
                self.tree = "1 file changed"  # a client that says this in its prompt breaks its own cache
                return f"{given['path']} was changed"
            case "Grep":
                found = [
                    f"{path.relative_to(self.folder)}:{number}: {line.strip()}"
                    for path in sorted(self.folder.rglob("*.py"))
                    for number, line in enumerate(path.read_text().splitlines(), 1)
                    if re.search(given["pattern"], line)
                ]
                return "\n".join(found) or "nothing found"
            case "Task":
                return Agent(self.url, self.folder).ask(given["prompt"], model=SMALL, system=REVIEWER)
            case _:
                return self._run(given["command"])

    def _run(self, command: str) -> str:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C"}
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        printed = (done.stdout + done.stderr).replace(str(self.folder), HOME).strip()
        printed = re.sub(r"in \d\.\d+s", "in 0.002s", printed)
        return printed if done.returncode == 0 else f"{printed}\nexit status {done.returncode}"


def send(url: str, body: dict[str, Any], *, agent: str = "example-agent/1.0") -> Any:
    """One request of a client."""
    headers = {"content-type": "application/json", "user-agent": agent, "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return json.loads(error.read())


# --- what happens ------------------------------------------------------------------------------------------


def play(server: Served, folder: Path) -> dict[str, str]:
    """Everything that is to be on record; the names by which the page finds it."""
    person = Person(server)
    project = folder / "recipes"
    for name, text in PROJECT.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    places = {"session": SESSION, **play_clients(server, person)}
    agent = Agent(server.url, project)
    agent.ask(FIRST)
    simple = {"model": SMALL, "max_tokens": 40, "system": TITLE, "messages": [{"role": "user", "content": FIRST}]}
    send(f"{server.url}/s/{SESSION}/v1/messages", simple)
    agent.tree = "clean"
    agent.ask(SECOND)
    rows = person.get(f"/api/exchanges?filter=session:{SESSION}&limit=100")["exchanges"]
    turns = [row["id"] for row in reversed(rows) if row["model"] == LARGE]
    places |= {"turn": turns[4], "last": turns[-1]}
    for model in (OTHER, SMALL):
        status, made = person.ask("POST", f"/api/exchanges/{turns[2]}/replay", {"model": model})
        assert status == 200, made
        person.ended(made["id"])
    places |= {"replayed": turns[2]}
    return places | play_chat(person) | play_evals(person, folder)


def play_clients(server: Served, person: Person) -> dict[str, str]:
    """A translated request, one that was tried again, and one that was held and edited."""
    asked = {
        "model": OTHER,
        "max_tokens": 300,
        "top_k": 40,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stop_sequences": ["END"],
        "system": [{"type": "text", "text": "You are a baker.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": EXPLAIN}],
    }
    send(f"{server.url}/p/openai/s/translated-client/v1/messages", asked, agent="recipe-site/2.3")
    (translated,) = person.get("/api/exchanges?filter=session:translated-client")["exchanges"]
    tried = {"model": SMALL, "max_tokens": 200, "messages": [{"role": "user", "content": SUMMARY}]}
    send(f"{server.url}/s/nightly-summary/v1/messages", tried, agent="nightly/0.4")
    (again,) = person.get("/api/exchanges?filter=session:nightly-summary")["exchanges"]
    person.put("/api/interception", {"mode": "every"})
    held = {**asked, "model": LARGE, "system": "You are a baker. Answer in the style of a pirate.", "thinking": None}
    held = {name: value for name, value in held.items() if value is not None}
    url = f"{server.url}/s/held-and-edited/v1/messages"
    client = threading.Thread(target=send, args=(url, held), kwargs={"agent": "recipe-site/2.3"})
    client.start()
    (exchange,) = person.held()
    section = next(each for each in person.view(exchange)["sections"] if each["kind"] == "system")
    person.edited(exchange, op="set_text", section=section["id"], text="You are a baker. Answer in plain words.")
    person.release(exchange)
    client.join()
    person.put("/api/interception", {"mode": "off"})
    return {"translated": translated["id"], "retried": again["id"], "edited": exchange}


def play_chat(person: Person) -> dict[str, str]:
    """Three questions in the chat; the last one uses tools, and one call is approved by hand."""
    run = ""
    for question in CHAT:
        if len(CHAT[question]) > 1:
            done(person.ask("PUT", "/api/chat/topics", {"toolsets": ["kitchen"]}))
        done(person.ask("PUT", "/api/chat/views/example", {"model": f"openai/{OTHER}"}))
        pair = done(person.ask("POST", "/api/chat/send", {"view": "example", "text": question}))["pair"]
        if len(CHAT[question]) > 1:
            run = person.until(lambda: person.get("/api/runs"), waits_for_approval)[0]["id"]
            pending = person.get(f"/api/runs/{run}")["pending"]["calls"]
            allowed = {each["key"]: {"decision": "allowed"} for each in pending}
            done(person.ask("POST", f"/api/runs/{run}/decide", {"decisions": allowed}))
        path = f"/api/chat/pairs/{pair}?view=example"
        shown = person.until(lambda path=path: person.get(path), lambda found: found["state"] != "sending")
        assert shown["state"] == "complete", shown
    done(person.ask("PUT", "/api/chat/topics", {"toolsets": []}))
    return {"run": run}


def waits_for_approval(runs: list[Any]) -> bool:
    return bool(runs) and runs[0]["state"] == "waiting"


def play_evals(person: Person, folder: Path) -> dict[str, str]:
    """A suite on two models."""
    program = (sys.executable, "-c", "from sightline.cli import main; raise SystemExit(main())")
    where = ("--config", str(folder / "sightline.toml"), "--data", str(folder / "data"))
    targets = ("--target", f"anthropic/{LARGE}", "--target", f"openai/{OTHER}")
    command = [*program, "eval", "run", "evals/kitchen.eval.yaml", *targets, *where]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    return {"eval": person.get("/api/evals")[0]["run"]}


def done(answer: tuple[int, Any]) -> Any:
    status, value = answer
    assert status == 200, value
    return value


async def collect(folder: Path, address: str) -> list[Entry | LogLine]:
    """All that is on record, without the names of this machine."""
    store = await open_store(folder / "data", prices=lambda _provider, _model: None, now=time.time)
    names = {str(folder / "recipes"): HOME, str(folder): "/srv", socket.gethostname(): "example"}
    names[address] = "http://127.0.0.1:9000"

    def clean(data: bytes) -> bytes:
        for own, shown in names.items():
            data = data.replace(own.encode(), shown.encode())
        return data

    found: list[Entry | LogLine] = []
    async for entry in store.export(parse(""), now=time.time()):
        if isinstance(entry, FactEntry):
            entry = msgspec.json.decode(clean(msgspec.json.encode(entry)), type=FactEntry)
        found.append(entry)
    for log in await store.logbook.logs():
        if not log.name.startswith("chat-sending:"):
            lines = await store.logbook.lines(log.name)
            found += [LogLine(log.name, line.at, clean(line.data).decode()) for line in lines]
    await store.close()
    for entry in found:
        data = entry.data if isinstance(entry, BodyEntry) else msgspec.json.encode(entry)
        assert not any(own.encode() in data for own in names), entry
    return found


def configuration(address: str) -> str:
    """The configuration of a Sightline whose providers are this model."""
    return (
        f'[providers.anthropic]\nbase_url = "{address}"\nrequest_max_retries = 2\n'
        f'[providers.openai]\nbase_url = "{address}/v1"\n'
        # The catalogue's prices hold at the vendor's own address alone.
        f'[models."anthropic/{LARGE}"]\nprices = {{ input = 3, output = 15, cached = 0.3, cache_write = 3.75 }}\n'
        f'[models."anthropic/{SMALL}"]\nprices = {{ input = 1, output = 5, cached = 0.1, cache_write = 1.25 }}\n'
        f'[models."openai/{OTHER}"]\nprices = {{ input = 0.15, output = 0.6, cached = 0.075 }}\n'
        '[tools.kitchen]\npython = "kitchen.py"\nallow = ["convert"]\n'
    )


def main() -> None:
    """Play it all, and write what was recorded."""
    os.environ |= {"ANTHROPIC_API_KEY": "no-key-is-needed-here", "OPENAI_API_KEY": "no-key-is-needed-here"}
    with tempfile.TemporaryDirectory(prefix="example") as scratch, model_on_loopback() as address:
        folder = Path(scratch).resolve()
        (folder / "evals").mkdir()
        (folder / "evals" / "kitchen.eval.yaml").write_text(SUITE)
        (folder / "kitchen.py").write_text(KITCHEN)
        with served(folder, configuration(address)) as server:
            places = play(server, folder)
        found = asyncio.run(collect(folder, address))
    latest = max(each.at for each in found if not isinstance(each, BodyEntry))
    held = DocumentToOpen("openai-chat", json.dumps(HELD), session="held-now")
    heading = ExampleHeading(places, latest, {"evals/kitchen.eval.yaml": SUITE}, held)
    lines = [msgspec.json.encode(heading), *map(msgspec.json.encode, found)]
    data = zstandard.ZstdCompressor(level=19).compress(b"\n".join(lines))
    FILE.write_bytes(data)
    print(f"{FILE}: {len(found)} entries, {len(data):,} bytes")


if __name__ == "__main__":
    main()
