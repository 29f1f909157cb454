"""A server that is killed while a person edits: every edit that was answered is on record, and the hold has ended."""

import http.client
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from tests.gateway_server import served
from tests.http_call import call
from tests.person import Person
from tests.server_process import start_alone

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CONFIG = '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n'


def _asked(url: str) -> str:
    try:
        return str(call("POST", f"{url}/p/acme/v1/chat/completions", BODY).body)
    except (OSError, http.client.HTTPException) as error:
        return repr(error)


def test_answered_edits_survive_and_the_hold_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "sightline.toml").write_text(CONFIG)
    child, killed = start_alone(tmp_path)
    with child, ThreadPoolExecutor(1) as pool:
        try:
            person = Person(killed)
            person.put("/api/interception", {"mode": "every"})
            waiting = pool.submit(_asked, killed.url)
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
