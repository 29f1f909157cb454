"""Claude Code, Codex, Gemini CLI and opencode as people install them, through `sightline run --tls`: they use the
vendors' own addresses, which a proxy leads to a provider on this machine. `make clients` runs it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import test_clients as plain
from tests.e2e.test_clients import CASES, PROGRAM, SAID, Case, Playing, _environment, _run
from tests.gateway_server import served
from tests.socket_upstream import socket_upstream
from tests.tls_stage import vendors_in_front_of

clients, upstreams = plain.clients, plain.upstreams  # fixtures
pytestmark = plain.pytestmark

NAMES = ("claude", "codex signed in", "gemini", "opencode of Anthropic", "opencode of OpenAI", "opencode of Google")
KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-of-nobody",
    "OPENAI_API_KEY": "sk-of-nobody",
    "GEMINI_API_KEY": "key-of-nobody",
    "GOOGLE_GENERATIVE_AI_API_KEY": "key-of-nobody",
}
CONFIG = "[server]\nport = 0\n"
GEMINI = json.dumps(
    {
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
)


def start(case: Case, clients: Path, folder: Path, way: str, trusted: Path, before: list[str]) -> tuple[int, str, str]:
    """Run the client in a home of its own; it finds the vendors by this proxy, unless it is given another."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    variables = _environment(clients, home, case) | KEYS
    if case.program == "gemini":
        (home / ".gemini/settings.json").write_text(GEMINI)
    variables |= dict.fromkeys(("HTTPS_PROXY", "https_proxy"), way)
    variables |= {name: str(trusted) for name in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")}
    return _run([*before, *case.words], work, variables)


@pytest.mark.parametrize("name", NAMES)
def test_a_client_does_a_task_below_tls(
    clients: Path, upstreams: dict[str, Playing], tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    upstream = upstreams[case.spoken]
    upstream.case = case
    (tmp_path / "direct").mkdir()
    with vendors_in_front_of(int(upstream.url.rpartition(":")[2]), tmp_path) as (way, trusted):
        upstream.bodies.clear()
        status, said, told = start(case, clients, tmp_path / "direct", way, trusted, [])
        assert status == 0, f"directly: {said}\n{told}"
        direct = list(upstream.bodies)
        upstream.bodies.clear()
        config = tmp_path / "sightline.toml"
        config.write_text(CONFIG)
        options = ["--tls", "--config", str(config), "--data", str(tmp_path / "data"), "--session", "a task"]
        status, said, told = start(case, clients, tmp_path, way, trusted, [*PROGRAM, "run", *options, "--"])
    assert status == 0, f"{said}\n{told}"
    assert f"It says {SAID}" in said
    through = list(upstream.bodies)
    assert differences(sorted(map(plainly, through)), sorted(map(plainly, direct))) == []
    with served(tmp_path, CONFIG) as gateway:
        lines = gateway.api("/api/exchanges?limit=100")["exchanges"]
        asked = [line for line in lines if line["dialect"] == case.spoken]
        assert {(line["state"], line["status"], line["session"]) for line in asked} == {("finished", 200, "a task")}
        sent = [json.loads(gateway.body(line["id"], "sent")) for line in asked]
        (received,) = (
            fact for fact in gateway.api(f"/api/exchanges/{asked[0]['id']}")["facts"] if fact["kind"] == "received"
        )
        assert received["transport"] == "tls"
    assert all(each in through for each in sent)
    assert len(sent) >= 2
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert not [key for key in KEYS.values() if key.encode() in kept]


def test_codex_sends_over_a_socket_below_tls_what_it_sends_directly(clients: Path, tmp_path: Path) -> None:
    case, seen = CASES["codex signed in"], []
    (tmp_path / "direct").mkdir()
    config = tmp_path / "sightline.toml"
    config.write_text(CONFIG)
    options = ["--tls", "--config", str(config), "--data", str(tmp_path / "data"), "--session", "a task"]
    with socket_upstream(plain._play_codex) as upstream, vendors_in_front_of(upstream.port, tmp_path) as (way, trusted):
        for folder, before in ((tmp_path / "direct", []), (tmp_path, [*PROGRAM, "run", *options, "--"])):
            upstream.frames.clear()
            status, said, told = start(case, clients, folder, way, trusted, before)
            assert status == 0, f"{said}\n{told}"
            assert f"It says {SAID}" in said
            seen.append([plainly(json.loads(frame)) for frame in upstream.frames])
        heads = [{**request.headers} for request in upstream.handshakes if request.path.startswith("/v1/responses")]
    direct, through = seen
    assert differences(through, direct) == []
    offered = {"sec-websocket-extensions"}  # compression is agreed on for each connection by itself
    assert {name.lower() for name in heads[-1]} | offered == {name.lower() for name in heads[0]} | offered
    with served(tmp_path, CONFIG) as gateway:
        lines = gateway.api("/api/exchanges?limit=100&filter=dialect:openai-responses")["exchanges"]
        shown = [gateway.api(f"/api/exchanges/{line['id']}") for line in lines]
    assert {(each["state"], each["transport"], each["session"]) for each in shown} == {
        ("finished", "websocket", "a task")
    }


def differences(through: list[str], direct: list[str]) -> list[tuple[str, str]]:
    """Where two lists of texts differ: the surroundings of the first place in each pair."""
    found = [(str(len(through)), str(len(direct)))] if len(through) != len(direct) else []
    for one, other in zip(through, direct, strict=False):
        if one != other:
            same = next((n for n, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) == 2), 0)
            at = max(0, same - 80)
            found.append((one[at : at + 240], other[at : at + 240]))
    return found


def plainly(body: Any) -> str:
    """A body without what differs between any two runs: ids, times, folders and the order of keys."""
    text = json.dumps(body, sort_keys=True)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"[^\"\s\\]*/(?:direct/)?(home|work)\b", r"\1", text).replace("-direct-work", "-work")
    text = re.sub(r"\b[0-9a-f]{32,}\b|\b(?:msg|call|toolu|ses|prt|sess|turn)_[0-9A-Za-z]+", "ID", text)
    times = r"\d\d:\d\d(:\d\d)?|\b1\d{9,12}(\.\d+)?\b|Wall time: [0-9.]+"
    made_up = r"Chunk ID: \w+|PGID: \d+|cch=[0-9a-f]+|cc_version=[0-9.a-z]+"
    return re.sub(f"{times}|{made_up}", "TIME", text)
