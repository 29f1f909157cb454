"""Commands that use the data folder of a running server send through it: its mode, rules, masks and record hold."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.person import Person
from tests.server_process import PROGRAM
from tests.upstream import Upstream, chunk, head, pieces, says, stall, streams

ROOT = Path(__file__).parents[2]
SSE = [("Content-Type", "text/event-stream")]


def event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "r", "model": "m", "choices": [choice]}).encode() + b"\n\n"


HELLO = [event({"role": "assistant", "content": "Hel"}), event({"content": "lo"}), event({}, "stop")]
STREAM = streams(*HELLO, b"data: [DONE]\n\n")


@dataclass
class Desk:
    """A server with one provider, and commands beside it."""

    folder: Path
    upstream: Upstream
    server: Served
    person: Person

    def run(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """A command of the same data folder."""
        return subprocess.run(self.command(*words), **self.around(variables), capture_output=True, timeout=90)

    @contextmanager
    def running(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """A command that goes on meanwhile."""
        command = self.command(*words)
        with subprocess.Popen(command, **self.around({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            try:
                yield child
            finally:
                child.kill()

    def command(self, *words: str) -> list[str]:
        return [*PROGRAM, *words, "--data", str(self.folder / "data"), "--config", str(self.folder / "sightline.toml")]

    def around(self, variables: dict[str, str]) -> dict[str, Any]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGHTLINE_")}
        environment = {**kept, "PYTHONPATH": str(ROOT / "src"), "ACME_KEY": "the-secret", **variables}
        return {"cwd": self.folder, "env": environment, "text": True}

    def exchanges(self) -> list[Any]:
        return self.server.api("/api/exchanges")["exchanges"]

    def edit(self, exchange: str, old: str, new: str, **more: str) -> None:
        """Give the section that has the old words the new ones, and let the request go."""
        [section] = [each for each in self.person.view(exchange)["sections"] if old in each["text"]]
        shown = self.person.edited(exchange, op="set_text", section=section["id"], text=new, **more)
        assert self.person.release(exchange, shown["body_sha256"])[0] == 200


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("ACME_KEY", "the-secret")
    with upstream_in_background() as upstream:
        config = f'[ask]\nmodel = "acme/m"\n[providers.acme]\nbase_url = "{upstream.url}/v1"\nkey_env = "ACME_KEY"\n'
        with served(tmp_path, config) as server:
            yield Desk(tmp_path, upstream, server, Person(server))


def test_an_answer_streams_through_the_server_and_is_on_record_once(desk: Desk) -> None:
    desk.upstream.script = [STREAM]
    done = desk.run("ask", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello"), done.stderr
    [exchange] = desk.exchanges()
    assert (exchange["state"], exchange["session"], exchange["provider"]) == ("finished", "ask", "acme")
    [seen] = desk.upstream.seen
    assert seen.header("authorization") == "Bearer the-secret"
    assert desk.server.body(exchange["id"], "sent") == seen.body


def test_a_held_question_waits_for_a_person_and_goes_out_as_they_edited_it(desk: Desk) -> None:
    desk.person.put("/api/interception", {"mode": "every"})
    desk.upstream.script = [STREAM]
    with desk.running("ask", "say something rude") as child:
        exchange = desk.person.held()[0]
        line = child.stderr.readline()
        assert line.startswith("note: held until you decide: ")
        assert f"{desk.server.url}/?token={desk.server.token}#/x/{exchange}" in line
        desk.edit(exchange, "rude", "say something kind")
        out, _ = child.communicate(timeout=60)
        assert (child.returncode, out) == (0, "Hello")
    [seen] = desk.upstream.seen
    assert b"kind" in seen.body
    assert b"rude" not in seen.body


def test_a_rule_that_drops_refuses_a_command_too(desk: Desk) -> None:
    desk.person.put("/api/rules", [{"filter": "text:secret", "action": "drop", "phase": "request"}])
    done = desk.run("ask", "tell me the secret")
    assert done.returncode == 3
    assert "error[invalid_request]: this request was dropped in Sightline" in done.stderr
    assert desk.upstream.seen == []
    assert [each["state"] for each in desk.exchanges()] == ["dropped"]


def test_masks_are_put_on_with_and_without_the_server(desk: Desk) -> None:
    desk.person.put("/api/interception", {"mode": "every"})
    desk.upstream.script = [STREAM]
    question = ["-s", "You are a pirate.", "hi"]
    with desk.running("ask", *question) as child:
        desk.edit(desk.person.held()[0], "pirate", "You are a nurse.", keep="all")
        child.communicate(timeout=60)
    desk.person.put("/api/interception", {"mode": "off"})
    for words in (["ask"], ["ask", "--apart"]):
        done = desk.run(*words, *question)
        assert done.returncode == 0, done.stderr
    assert [(b"pirate" in seen.body, b"nurse" in seen.body) for seen in desk.upstream.seen] == [(False, True)] * 3


def test_the_server_makes_the_attempts_of_one_budget_and_the_command_tells_them(desk: Desk) -> None:
    desk.upstream.script = [says({}, 503), says({}, 503), STREAM]
    done = desk.run("ask", "hi")
    assert (done.returncode, done.stdout) == (0, "Hello")
    assert [line.split(" after")[0] for line in done.stderr.splitlines() if "attempt" in line] == [
        "note: attempt 2",
        "note: attempt 3",
    ]
    assert len(desk.upstream.seen) == 3
    desk.upstream.script = [says({"error": {"message": "down"}}, 503)] * 20
    assert desk.run("ask", "hi").returncode == 3
    assert len(desk.upstream.seen) == 3 + 6


def test_a_command_that_is_left_is_cancelled_in_the_server(desk: Desk) -> None:
    desk.person.put("/api/interception", {"mode": "every"})
    with desk.running("ask", "hi") as child:
        exchange = desk.person.held()[0]
        child.kill()
        child.wait(60)
        assert desk.person.ended(exchange)["state"] == "cancelled"


def test_evals_run_through_the_server_several_at_once(desk: Desk) -> None:
    arrived, everyone = list[int](), asyncio.Event()

    async def together() -> None:
        arrived.append(1)
        if len(arrived) == 6:
            everyone.set()
        await everyone.wait()

    whole = {"index": 0, "message": {"role": "assistant", "content": "four"}, "finish_reason": "stop"}
    data = json.dumps({"id": "r", "model": "m", "choices": [whole]}).encode()
    desk.upstream.script = [pieces(together, head(200, framing=str(len(data))), data)]
    cases = [
        {
            "id": f"c{n}",
            "criteria": "four",
            "input": f"two and two, {n}",
            "assertions": [{"type": "contains", "value": "four"}],
        }
        for n in range(12)
    ]
    (desk.folder / "sums.eval.yaml").write_text(json.dumps({"name": "sums", "tests": cases}))
    done = desk.run("eval", "run", "sums.eval.yaml", "--target", "acme/m", "--workers", "6", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert len(desk.upstream.seen) == 12
    found = desk.exchanges()
    assert len(found) == 12, "each is on record once"
    assert {each["state"] for each in found} == {"finished"}


def test_a_run_with_tools_goes_on_with_what_a_person_made_of_its_request(desk: Desk) -> None:
    (desk.folder / "tools.py").write_text('def weigh(what: str) -> str:\n    """Weigh it."""\n    return "3 kg"\n')
    called = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "weigh", "arguments": '{"what":"it"}'},
    }
    wants = [event({"role": "assistant", "tool_calls": [called]}), event({}, "tool_calls"), b"data: [DONE]\n\n"]
    desk.upstream.script = [streams(*wants), STREAM]
    desk.person.put("/api/interception", {"mode": "next"})
    with desk.running("ask", "--tools", "tools.py", "--yes", "weigh the cat") as child:
        desk.edit(desk.person.held()[0], "cat", "weigh the dog")
        out, errors = child.communicate(timeout=60)
        assert child.returncode == 0, errors
    assert "Hello" in out
    first, second = desk.upstream.seen
    assert (b"dog" in first.body, b"cat" in first.body) == (True, False)
    assert (b"dog" in second.body, b"cat" in second.body, b"3 kg" in second.body) == (True, False, True)
    assert len(desk.exchanges()) == 2


def test_a_server_that_dies_midway_is_a_clear_error(desk: Desk) -> None:
    folder = desk.folder / "another"
    folder.mkdir()
    (folder / "sightline.toml").write_text((desk.folder / "sightline.toml").read_text())
    other = replace(desk, folder=folder)
    desk.upstream.script = [stall(head(200, SSE), chunk(HELLO[0]))]
    with other.running("serve", "--port", "0", "--no-open") as server:
        assert server.stdout.readline().startswith("http://127.0.0.1:")
        with other.running("ask", "hi") as child:
            assert child.stdout.read(3) == "Hel"
            server.kill()
            server.wait(60)
            _, errors = child.communicate(timeout=60)
            assert child.returncode == 3, errors
    assert "error[network]: the running server at http://127.0.0.1:" in errors
    assert "--apart" in errors
    desk.upstream.script = [STREAM]
    desk.upstream._played = 0
    again = other.run("ask", "hi")
    assert (again.returncode, again.stdout) == (0, "Hello"), "what the dead server left behind misleads nobody"


def test_the_chat_is_opened_on_the_server_of_the_folder_wherever_it_listens(desk: Desk) -> None:
    done = desk.run("chat", "--no-open")
    assert (done.returncode, done.stdout.strip()) == (0, f"{desk.server.url}/?token={desk.server.token}#/chat")
