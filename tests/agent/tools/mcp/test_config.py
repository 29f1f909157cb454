import json
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.tools.mcp.config import CommandServer, Configured, HttpServer, is_here, parse_config
from sightline.errors import Code, Fault

FOLDER = Path("/project")
ENVIRONMENT = {"TOKEN": "sk-very-secret", "HOME": "/srv/me"}


def read(document: Any) -> Configured:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return parse_config(text, where=".mcp.json", folder=FOLDER, environment=ENVIRONMENT)


def one(entry: Any) -> Configured:
    return read({"mcpServers": {"it": entry}})


def refused(document: Any) -> Fault:
    with pytest.raises(Fault) as raised:
        read(document)
    fault = raised.value
    assert fault.code is Code.CONFIG
    assert ".mcp.json" in fault.message
    assert fault.hint
    assert "sk-very-secret" not in f"{fault.message}{fault.hint}"
    return fault


def test_a_command_with_all_that_belongs_to_it() -> None:
    entry = {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "server", "${HOME}/notes", 3, True],
        "env": {"API_KEY": "${TOKEN}", "MODE": "fast", "PORT": 80},
        "cwd": "sub",
    }
    [spec] = one(entry).servers
    assert isinstance(spec.reached, CommandServer)
    assert spec.reached.words == ("npx", "-y", "server", "/srv/me/notes", "3", "true")
    assert spec.reached.environment == {"API_KEY": "sk-very-secret", "MODE": "fast", "PORT": "80"}
    assert spec.reached.folder == FOLDER / "sub"
    assert spec.secret == {"sk-very-secret"}
    assert spec.hidden == {"sk-very-secret", "/srv/me"}


def test_an_address_with_its_headers() -> None:
    url = "https://mcp.example/mcp?key=12345678"
    [spec] = one({"type": "http", "url": url, "headers": {"Authorization": "Bearer ${TOKEN}"}}).servers
    assert spec.reached == HttpServer(url, {"Authorization": "Bearer sk-very-secret"})
    assert spec.secret == {"Bearer sk-very-secret", "sk-very-secret", "key=12345678"}


def test_what_is_secret_is_in_no_representation() -> None:
    found = one({"url": "https://a.example/", "headers": {"X-Key": "${TOKEN}"}})
    assert "secret" not in repr(found).replace("secret=", "")
    assert "secret" not in repr(one({"command": "a", "env": {"K": "${TOKEN}"}}).servers[0].reached)


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
@pytest.mark.parametrize("kind", ["http", "streamable-http", "streamableHttp"])
def test_files_of_several_programs_are_read(key: str, kind: str) -> None:
    found = read({key: {"b": {"type": kind, "url": "http://localhost:1/mcp"}, "a": {"command": "x"}}, "inputs": []})
    assert [spec.name for spec in found.servers] == ["b", "a"]
    assert found.notes == ()


def test_words_that_mean_nothing_here_are_noted() -> None:
    found = read({"mcpServers": {"it": {"command": "x", "autoApprove": ["all"]}}, "theme": "dark"})
    assert found.notes == (
        ".mcp.json: 'theme' means nothing here and is ignored",
        "the MCP server 'it': 'autoApprove' means nothing here and is ignored",
    )


def test_a_server_that_is_switched_off_is_not_looked_at() -> None:
    found = read({"mcpServers": {"off": {"disabled": True}, "out": {"enabled": False}, "on": {"command": "x"}}})
    assert [spec.name for spec in found.servers] == ["on"]
    assert found.notes[0] == "the MCP server 'off' is switched off in .mcp.json"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"{", "is not JSON"),
        (b'{"mcpServers": {} // mine\n}', "is not JSON"),
        ([], "is not a JSON object"),
        ({}, "names no MCP servers"),
        ({"mcpServers": {}}, "names no MCP servers"),
        ({"mcpServers": []}, "names no MCP servers"),
        ({"mcpServers": {"it": "npx"}}, "is not an object"),
        ({"mcpServers": {" ": {"command": "x"}}}, "has no name"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_fault(document: Any, words: str) -> None:
    assert words in refused(document).message


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "needs either a command or a url"),
        ({"command": "x", "url": "https://a.example"}, "needs either"),
        ({"type": "stdio", "url": "https://a.example"}, "no command"),
        ({"type": "http", "command": "x"}, "no url"),
        ({"type": "ws", "url": "https://a.example"}, "unknown type 'ws'"),
        ({"type": "sse", "url": "https://a.example/sse"}, "old SSE transport"),
        ({"command": ["x"]}, "command that is no text"),
        ({"command": "x", "args": "y"}, "args that are no list"),
        ({"command": "x", "args": [None]}, "args[0] that is no text"),
        ({"command": "x", "env": ["A=1"]}, "env that is no table"),
        ({"command": "x", "env": {"A": {}}}, "env['A'] that is no text"),
        ({"command": "x\0"}, "null character"),
        ({"command": "${TOKEN}${NONE}"}, "the variable NONE is not set (command)"),
        ({"command": "x", "env": {"A": "${input:key}"}}, "${input:key} is no variable"),
        ({"url": "ftp://a.example"}, "which is none"),
        ({"url": "https://"}, "which is none"),
        ({"url": "https://a:port/"}, "which is none"),
        ({"url": "https://a.example/\n"}, "which is none"),
        ({"url": "https://[/${TOKEN}"}, "'https://[/${TOKEN}'"),
        ({"url": "http://a.example/"}, "not reached by https"),
        ({"url": "https://a.example", "headers": {"A B": "1"}}, "header 'A B'"),
        ({"url": "https://a.example", "headers": {"A": "1\r\nB: ${TOKEN}"}}, "header 'A'"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_fault(entry: Any, words: str) -> None:
    fault = refused({"mcpServers": {"it": entry}})
    assert words in fault.message
    assert "'it'" in fault.message


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_needs_no_https(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["localhost.example", "10.0.0.1", "0.0.0.0", "::", "example"])
def test_another_machine_does(host: str) -> None:
    assert not is_here(host)
