"""A server with two workers serves raw paths, sockets and clients below TLS as one process does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from websockets.sync.client import connect

from tests.contract.test_raw_sdks import BATCH, FakeVendor
from tests.raw_upstream import raw_upstream
from tests.socket_upstream import answer_all, socket_upstream
from tests.tls_stage import vendors_in_front_of
from tests.worker_stage import WorkerStage, workers

ROUNDS = 6
"""Connections are divided among the processes, so that some of these are each one's."""
EMBED = """
import openai
print(len(openai.OpenAI().embeddings.create(model="e", input="a").data))
"""
CONFIG = """
[network]
ca_file = "{trusted}"
[providers.acme]
dialect = "openai-chat"
base_url = "{raw}/v1"
[providers.sockets]
dialect = "openai-responses"
base_url = "{sockets}"
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerStage]:
    folder = tmp_path_factory.mktemp("workers")
    with ExitStack() as stack:
        raw = stack.enter_context(raw_upstream(FakeVendor()))
        sockets = stack.enter_context(socket_upstream(answer_all))
        way, trusted = stack.enter_context(vendors_in_front_of(raw.port, folder))
        config = CONFIG.format(trusted=trusted, raw=raw.url, sockets=sockets.url)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HTTPS_PROXY", way)
            environment.delenv("NO_PROXY", raising=False)
            made = stack.enter_context(workers(folder, config=config))
        made.worker()
        yield made


def recorded(stage: WorkerStage, session: str) -> list[Any]:
    found: list[Any] = stage.server.api(f"/api/exchanges?limit=100&filter=session:{session}")["exchanges"]
    return found


def test_files_and_embeddings_pass_in_every_process(stage: WorkerStage) -> None:
    for _ in range(ROUNDS):
        with openai.OpenAI(base_url=f"{stage.server.url}/p/acme/s/raw/v1", api_key="k", max_retries=0) as client:
            made = client.files.create(file=("batch.jsonl", BATCH), purpose="batch")
            assert client.files.content(made.id).read() == BATCH
            assert len(client.embeddings.create(model="e", input=["a", "b"]).data) == 2
    lines = recorded(stage, "raw")
    assert len(lines) == 3 * ROUNDS
    assert {(line["dialect"], line["state"], line["status"]) for line in lines} == {("raw-http", "finished", 200)}
    uploads = [line["id"] for line in lines if line["path"] == "/v1/files"]
    assert all(BATCH in stage.server.body(each, "received") for each in uploads)


def test_a_socket_is_served_whichever_process_was_connected(stage: WorkerStage) -> None:
    url = stage.server.url.replace("http", "ws", 1)
    for _ in range(ROUNDS):
        with connect(f"{url}/p/sockets/s/sockets/v1/responses", proxy=None) as client:
            client.send(json.dumps({"type": "response.create", "model": "gpt-5", "input": "hi"}))
            while json.loads(client.recv(timeout=30))["type"] != "response.completed":
                pass
    assert [line["state"] for line in recorded(stage, "sockets")] == ["finished"] * ROUNDS


def test_a_client_below_tls_is_served(stage: WorkerStage) -> None:
    status, opened = stage.server.post("/api/proxy", json.dumps({"session": "tls"}).encode())
    assert status == 200
    bundle = stage.folder / "bundle.pem"
    bundle.write_text(opened["certificate"])
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import openai; print(len(openai.OpenAI().embeddings.create(model='e', input='a').data))",
        ],
        env={
            "PATH": os.environ["PATH"],
            "HTTPS_PROXY": opened["url"],
            "SSL_CERT_FILE": str(bundle),
            "OPENAI_API_KEY": "sk-x",
        },
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == b"1\n", done.stderr
    (line,) = recorded(stage, "tls")
    assert (line["state"], line["provider"], line["path"]) == ("finished", "openai", "/v1/embeddings")
