"""What a server and its recorder have loaded: code that nobody uses costs memory in each of them."""

import os
import re
import signal
import time
from pathlib import Path

from tests.background import upstream_in_background
from tests.http_call import call
from tests.server_process import PROGRAM, start
from tests.upstream import says

REPLY = {"id": "c", "object": "chat.completion", "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
FOR_THE_PAGE = (
    "sightline.app.rooms", "sightline.chat", "sightline.evals", "sightline.agent.service", "sightline.agent.tools",
    "sightline.workbench.api", "sightline.plugins", "jsonschema", "ruamel.yaml",
)  # fmt: skip
FOR_OTHERS = (
    "sightline.dialects.anthropic", "sightline.dialects.gemini", "sightline.dialects.openai_responses",
    "sightline.dialects.raw", "asyncpg", "cryptography", "mcp", "httpx", "sightline.telemetry.exporter",
    "websockets",
)  # fmt: skip
IMPORTED = re.compile(r"^import time:.*\|\s*([\w.]+)$", re.MULTILINE)


def test_rooms_of_the_page_are_loaded_with_it_and_the_recorder_has_no_event_loop(tmp_path: Path) -> None:
    errors, environment = tmp_path / "errors", {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    command = [*PROGRAM, "serve", "--port", "0", "--no-open", "--data", str(tmp_path / "data")]
    with upstream_in_background() as upstream, errors.open("wb") as log:
        upstream.script = [says(REPLY)]
        (tmp_path / "sightline.toml").write_text(f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n')
        environment["PYTHONPROFILEIMPORTTIME"] = "1"
        child, server = start(command, stderr=log, cwd=tmp_path, env=environment)
        address, token = server.url, server.token
        with child:
            try:
                question = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
                assert b"yes" in call("POST", f"{address}/p/acme/v1/chat/completions", question, token="own-key").body
                assert call("GET", f"{address}/api/health").json()["status"] == "ok"
                before = IMPORTED.findall(errors.read_text())
                assert b"<html" in call("GET", f"{address}/", token=token).body
                while "sightline.app.rooms" not in IMPORTED.findall(errors.read_text()):
                    assert child.poll() is None, errors.read_text()
                    time.sleep(0.05)  # they are loaded while the browser loads the page
                about = call("GET", f"{address}/api/about", token=token).json()
                child.send_signal(signal.SIGTERM)
                child.communicate(timeout=60)
            finally:
                child.kill()
    after = IMPORTED.findall(errors.read_text())
    assert "sightline.exchange.relay" in before
    assert not [name for name in (*FOR_THE_PAGE, *FOR_OTHERS) if name in before]
    assert about["places"] == ["traffic", "chat", "runs", "evals", "example"]
    assert [name for name in FOR_THE_PAGE if name not in after] == []
    # The server and the recorder have both loaded the importer, and the server alone the loop.
    assert [after.count(name) for name in ("sightline.store.importer", "asyncio", "ssl")] == [2, 1, 1]
