"""A server that is killed while a person edits: every edit that was answered is on record, and the hold has ended."""

import http.client
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.gateway_server import Served, served
from tests.http_call import call
from tests.person import Person

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CONFIG = '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n'
_SERVING = """
import asyncio, sys
from sightline.app.configuration import configuration
from sightline.app.server import open_server
from sightline.server.listener import bind_sockets

async def main(config, folder):
    sockets = bind_sockets("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    async with open_server(configuration(config), folder, host="127.0.0.1", port=port) as (listening, link):
        print(link, flush=True)
        await listening.run_on(sockets)

asyncio.run(main(*sys.argv[1:]))
"""


def _asked(url: str) -> str:
    try:
        return str(call("POST", f"{url}/p/acme/v1/chat/completions", BODY).body)
    except (OSError, http.client.HTTPException) as error:
        return repr(error)


def test_answered_edits_survive_and_the_hold_is_cancelled(tmp_path: Path) -> None:
    config = tmp_path / "sightline.toml"
    config.write_text(CONFIG)
    command = [sys.executable, "-c", _SERVING, str(config), str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child, ThreadPoolExecutor(1) as pool:
        try:
            link = urlsplit(child.stdout.readline().strip())
            token = parse_qs(link.query)["token"][0]
            person = Person(Served(f"http://{link.netloc}", token, None))
            person.put("/api/interception", {"mode": "every"})
            waiting = pool.submit(_asked, f"http://{link.netloc}")
            (exchange,) = person.held()
            section = person.view(exchange)["sections"][0]["id"]
            edits = ({"op": "set_text", "section": section, "text": f"hi {number}"} for number in range(5))
            told = [person.edit(exchange, "?changed=1", **each)[1]["body_sha256"] for each in edits]
        finally:
            os.kill(child.pid, signal.SIGKILL)
        waiting.result(30)
    with served(tmp_path, CONFIG) as server:
        person = Person(server)
        view = person.view(exchange)
        assert view["state"] == "cancelled"
        assert [fact["after"] for fact in view["facts"] if fact["kind"] == "edited"] == told
        assert view["body_sha256"] == told[-1] == sha256(server.body(exchange, "sent")).hexdigest()
        assert [part["text"] for part in view["sections"][0]["parts"]] == ["hi 4"]
        assert person.get("/api/holds") == []
