import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sightline.agent.tools.mcp.config import (
    Expansion,
    HttpServer,
    McpContext,
    ServerConfig,
    UnfilledError,
    is_here,
    mask_values,
    open_mcp_file,
    parse_config,
)
from sightline.errors import Code, Fault
from tests.agent.tools.mcp.stage import hostile, names

ENVIRONMENT = {"KEY": "sk-1234", "EMPTY": "", "ON": "1"}


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("plain $KEY", "plain $KEY"),
        ("${KEY}", "sk-1234"),
        ("${env:KEY}", "sk-1234"),
        ("Bearer ${KEY}, ${ON}", "Bearer sk-1234, 1"),
        ("${NONE:-some thing}", "some thing"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${KEY:-other}", "sk-1234"),
    ],
)
def test_variables_are_filled_in(written: str, filled: str) -> None:
    assert Expansion(ENVIRONMENT).expand(written) == filled


def test_what_is_filled_in_is_not_filled_in_again() -> None:
    assert Expansion({"A": "${B}", "B": "no"}).expand("${A}") == "${B}"


@pytest.mark.parametrize("written", ["${NONE}", "${input:key}", "${workspaceFolder}/x", "${}", "${EMPTY}"])
def test_what_cannot_be_filled_in_is_named(written: str) -> None:
    with pytest.raises(UnfilledError) as raised:
        Expansion({"KEY": "sk-1234"}).expand(f"${{KEY}} {written}")
    assert "sk-1234" not in str(raised.value)


def test_what_came_from_the_environment_is_remembered() -> None:
    expansion = Expansion(ENVIRONMENT)
    expansion.expand("${KEY} ${ON} ${NONE:-default}")
    assert expansion.values == {"sk-1234"}  # "1" would be missing in every number


def test_a_value_within_another_leaves_nothing_of_it() -> None:
    assert mask_values("sk-1234-5678 and sk-1234", frozenset({"sk-1234", "sk-1234-5678"})) == "*** and ***"


FOLDER = Path("/project")
CONFIG_ENVIRONMENT = {"TOKEN": "sk-very-secret", "HOME": "/srv/me"}


def read(document: Any) -> ServerConfig:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return parse_config(text, where=".mcp.json", folder=FOLDER, environment=CONFIG_ENVIRONMENT)


def one(entry: Any) -> ServerConfig:
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


def test_unknown_configuration_keys_are_noted() -> None:
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
        (b"{", "mcp.json is not JSON: expecting"),
        (b'{"mcpServers": {} // mine\n}', "is not JSON"),
        ([], "the file must be an object, not an empty list"),
        ({}, 'the file lacks the key "mcpServers"'),
        ({"mcpServers": {}}, "names no MCP servers"),
        ({"mcpServers": []}, "mcpServers must be an object, not an empty list"),
        ({"mcpServers": {"it": "npx"}}, "mcpServers.it must be an object, not text"),
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
        ({"type": "ws", "url": "https://a.example"}, 'type "ws" is unknown'),
        ({"type": "sse", "url": "https://a.example/sse"}, "old SSE transport"),
        ({"command": ["x"]}, "it.command must be text, not a list"),
        ({"command": "x", "args": "y"}, "it.args must be a list, each text, not text"),
        ({"command": "x", "args": [None]}, "it.args[0] must be text, not nothing"),
        ({"command": "x", "env": ["A=1"]}, "it.env must be an object, each value text, not a list"),
        ({"command": "x", "env": {"A": {}}}, "it.env.A must be text, not an object"),
        ({"command": "x\0"}, "null character"),
        ({"command": "${TOKEN}${NONE}"}, "it.command: the variable NONE is not set"),
        ({"command": "x", "env": {"A": "${input:key}"}}, "${input:key} is not an environment variable"),
        ({"url": "ftp://a.example"}, "is none"),
        ({"url": "https://"}, "is none"),
        ({"url": "https://a:port/"}, "is none"),
        ({"url": "https://a.example/\n"}, "is none"),
        ({"url": "https://[/${TOKEN}"}, "'https://[/${TOKEN}'"),
        ({"url": "http://a.example/"}, "not reached by https"),
        ({"url": "https://a.example", "headers": {"A B": "1"}}, 'headers."A B": HTTP cannot carry'),
        ({"url": "https://a.example", "headers": {"A": "1\r\nB: ${TOKEN}"}}, "headers.A: HTTP cannot carry"),
    ],
)
def test_a_server_that_cannot_be_used_is_a_fault(entry: Any, words: str) -> None:
    fault = refused({"mcpServers": {"it": entry}})
    assert words in fault.message
    assert fault.message.startswith(".mcp.json:1: mcpServers.it")


def test_every_mistake_of_a_file_is_reported_with_its_line() -> None:
    text = b"""{"servers": {
        "a": {"command": ["x"], "args": 1},
        "b": {"type": "ws"},
        "off": {"args": 1, "disabled": true}}}"""
    fault = refused(text)
    assert fault.details == [
        ".mcp.json:2: servers.a.command must be text, not a list",
        ".mcp.json:2: servers.a.args must be a list, each text, not 1",
        '.mcp.json:3: servers.b: the type "ws" is unknown',
    ]
    assert fault.hint.splitlines()[1:] == [f"Also: {each}" for each in fault.details[1:]]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_needs_no_https(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", ["localhost.example", "10.0.0.1", "0.0.0.0", "::", "example"])
def test_another_machine_does(host: str) -> None:
    assert not is_here(host)


async def test_the_servers_of_a_file_are_opened(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"it": hostile("Server", env={})}}))
    tools = await open_mcp_file(file, McpContext({"PATH": os.environ["PATH"]}))
    found = names(tools)
    await tools.close()
    await tools.close()
    assert found == ["it__go"]


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"none\.json cannot be read") as raised:
        asyncio.run(open_mcp_file(tmp_path / "none.json", McpContext({})))
    assert raised.value.code is Code.CONFIG
    assert raised.value.hint


@pytest.mark.parametrize("module", ["sightline.agent.tools.mcp.config", "sightline.cli.program"])
def test_the_sdk_is_not_loaded_before_it_is_needed(module: str) -> None:
    script = f"import sys, {module}; sys.exit(any(name.split('.')[0] in ('mcp', 'anyio') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
