"""The proxy below TLS with real clients (curl, Node, the vendors' SDKs) and with hostile ones."""

import asyncio
import base64
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from sightline.server.proxy import login_of, session_in
from tests.background import upstream_in_background
from tests.person import Person
from tests.tls_stage import CHAT_REPLY, TlsStage, context_of, tls_stage
from tests.upstream import LAST, answer, chunk, cut, head, pieces, says, stall, streams

KEY = "sk-secret-of-the-client"
ASK = {"model": "gpt-x", "messages": [{"role": "user", "content": "Hi"}]}
HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}


TOKEN, COOKIE, LOGIN, UNREAD = "eyJ-of-a-subscription", "my-cookie", "refresh-token-of-mine", "words-of-a-tunnel"


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsStage]:
    """A stage for programs that are refused, and so leave it as it was."""
    with tls_stage(tmp_path_factory.mktemp("tls")) as made:
        yield made


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[TlsStage]:
    with tls_stage(tmp_path) as made:
        made.upstream.script = [says(CHAT_REPLY)]
        yield made
    # Whatever the test did, the server has ended and everything is on the disk.
    found = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert b"received" in found or not made.upstream.seen or b"sqlite" in found.lower()
    assert [each for each in (KEY, TOKEN, COOKIE, LOGIN, UNREAD) if each.encode() in found] == []


def curl(stage: TlsStage, *words: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    variables = {"PATH": os.environ["PATH"], **stage.variables()}
    return subprocess.run(
        ["curl", "-sS", "-i", "-m", "30", "--suppress-connect-headers", *words],
        input=given,
        capture_output=True,
        env=variables,
        check=False,
    )


URL = "https://api.openai.com/v1/chat/completions"
HEADER_WORDS = [word for name, value in HEADERS.items() for word in ("-H", f"{name}: {value}")]


def ask(stage: TlsStage, *words: str, url: str = URL, body: Any = ASK) -> "subprocess.CompletedProcess[bytes]":
    given = json.dumps(body).encode()
    return curl(stage, url, *HEADER_WORDS, "-H", "expect:", "--data-binary", "@-", *words, given=given)


# --- what is opened ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_request_to_a_vendor_is_an_exchange(stage: TlsStage, version: str) -> None:
    done = ask(stage, version)
    assert done.returncode == 0, done.stderr
    told, _, body = done.stdout.partition(b"\r\n\r\n")
    assert told.startswith(b"HTTP/2 200" if version == "--http2" else b"HTTP/1.1 200")
    assert json.loads(body) == CHAT_REPLY
    (seen,) = stage.upstream.seen
    assert (seen.method, seen.target, seen.header("host")) == ("POST", "/v1/chat/completions", "api.openai.com")
    assert seen.json() == ASK
    assert seen.header("authorization") == f"Bearer {KEY}"
    (line,) = stage.exchanges()
    assert (line["provider"], line["session"], line["state"], line["model"]) == ("openai", "s1", "finished", "gpt-x")
    shown = stage.gateway.api(f"/api/exchanges/{line['id']}")
    assert shown["facts"][0]["transport"] == "tls"
    assert shown["hashes"]["received"] == shown["hashes"]["sent"]


def test_a_configured_key_and_address_give_way_to_the_clients_own(tmp_path: Path) -> None:
    config = '[providers.openai]\nbase_url = "https://elsewhere.example/v1"\nheaders = { x-mine = "1" }\n'
    keys = {"OPENAI_API_KEY": "sk-of-the-server"}
    route = '[[routes]]\nmodel = "*"\nprovider = "anthropic"\n'
    with tls_stage(tmp_path, config=config + route, variables=keys) as stage:
        stage.upstream.script = [says(CHAT_REPLY)]
        assert b"200" in ask(stage).stdout
        (seen,) = stage.upstream.seen
        assert seen.header("authorization") == f"Bearer {KEY}"
        assert seen.header("x-mine") == ""
        assert stage.way.asked == ["CONNECT api.openai.com:443 HTTP/1.1"]


def test_a_login_by_subscription_is_passed_and_on_no_record(stage: TlsStage) -> None:
    stage.upstream.script = [streams(b"event: x\n\n")]
    curl(
        stage,
        "https://chatgpt.com/backend-api/codex/responses",
        *("-H", f"authorization: Bearer {TOKEN}", "-H", f"cookie: cf={COOKIE}", "-H", "content-type: application/json"),
        *("-d", json.dumps({"model": "gpt-x", "input": "Hi", "stream": True})),
    )
    (seen,) = stage.upstream.seen
    assert (seen.target, seen.header("host")) == ("/backend-api/codex/responses", "chatgpt.com")
    assert (seen.header("authorization"), seen.header("cookie")) == (f"Bearer {TOKEN}", f"cf={COOKIE}")
    (line,) = stage.exchanges()
    assert (line["dialect"], line["path"]) == ("openai-responses", "/backend-api/codex/responses")


@pytest.mark.parametrize(
    "words",
    [
        ("https://api.openai.com/v1/models?limit=2",),
        ("https://api.anthropic.com/api/oauth/profile", "-X", "PUT", "-d", f"refresh_token={LOGIN}"),
        ("https://api.anthropic.com/v1/oauth/token", "-d", f"refresh_token={LOGIN}"),
        ("https://generativelanguage.googleapis.com/v1beta/models", "-I"),
    ],
)
def test_every_path_of_an_opened_host_goes_upstream(stage: TlsStage, words: tuple[str, ...]) -> None:
    stage.upstream.script = [answer(201, b"" if "-I" in words else b"theirs", [("x-theirs", "1")])]
    done = curl(stage, *words)
    assert b" 201" in done.stdout
    assert b"x-theirs: 1" in done.stdout.lower()
    parts = urlsplit(words[0])
    (seen,) = stage.upstream.seen
    assert seen.target == parts.path + (f"?{parts.query}" if parts.query else "")
    assert seen.header("host") == parts.hostname
    if "-d" in words:
        assert seen.body == f"refresh_token={LOGIN}".encode()


def test_a_request_is_held_and_sent_as_it_was_edited(stage: TlsStage) -> None:
    person = Person(stage.gateway)
    person.put("/api/interception", {"mode": "every"})
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(ask, stage)
        (held,) = person.held()
        assert stage.upstream.seen == []
        shown = person.edited(held, op="set", pointer="/messages/0/content", value="Hello")
        assert person.release(held, shown["body_sha256"])[0] == 200
        assert b"200" in asking.result(60).stdout
    assert stage.upstream.seen[0].json()["messages"] == [{"role": "user", "content": "Hello"}]


# --- real clients -----------------------------------------------------------------------------------

OPENAI = """
import openai
with openai.OpenAI(max_retries=0) as sdk:
    said = sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
    print(said.choices[0].message.content)
"""
ANTHROPIC = """
import anthropic
with anthropic.Anthropic(max_retries=0) as sdk:
    print(sdk.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]).content[0].text)
"""
GOOGLE = """
from google import genai
with genai.Client() as sdk:
    print(sdk.models.generate_content(model="m", contents="Hi").text)
"""
MESSAGE = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
CANDIDATE = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
}


@pytest.mark.parametrize(
    ("script", "reply", "host", "dialect"),
    [
        (OPENAI, CHAT_REPLY, "api.openai.com", "openai-chat"),
        (ANTHROPIC, MESSAGE, "api.anthropic.com", "anthropic"),
        (GOOGLE, CANDIDATE, "generativelanguage.googleapis.com", "gemini"),
    ],
)
def test_an_sdk_with_its_defaults_is_served(stage: TlsStage, script: str, reply: Any, host: str, dialect: str) -> None:
    stage.upstream.script = [says(reply)]
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
    variables = {"PATH": os.environ["PATH"], **stage.variables(), **dict.fromkeys(names, KEY)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=variables, check=False, timeout=60)
    assert done.stdout.strip() == b"Hello.", done.stderr
    assert stage.upstream.seen[0].header("host") == host
    (line,) = stage.exchanges()
    assert (line["dialect"], line["state"], line["session"]) == (dialect, "finished", "s1")


NODE = """
const { connect } = require("node:tls"), http = require("node:http"), https = require("node:https");
const proxy = new URL(process.env.HTTPS_PROXY);
const login = "Basic " + Buffer.from(decodeURIComponent(proxy.username) + ":" + proxy.password).toString("base64");
http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: "api.openai.com:443",
    headers: { "proxy-authorization": login } })
  .on("connect", (_answer, socket) => {
    const createConnection = () => connect({ socket, servername: "api.openai.com", ALPNProtocols: ["http/1.1"] });
    const request = https.request("https://api.openai.com/v1/chat/completions",
      { method: "POST", createConnection, headers: { "content-type": "application/json" } }, (answer) => {
        answer.setEncoding("utf8");
        answer.on("data", (text) => process.stdout.write(text)).on("end", () => process.exit(0));
      });
    request.end(JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }));
  }).end();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_node_trusts_what_its_variable_names(stage: TlsStage) -> None:
    variables = {"PATH": os.environ["PATH"], **stage.variables()}
    done = subprocess.run(["node", "-e", NODE], capture_output=True, env=variables, check=False, timeout=60)
    assert json.loads(done.stdout) == CHAT_REPLY, done.stderr
    assert stage.exchanges()[0]["provider"] == "openai"


# --- what is tunnelled ------------------------------------------------------------------------------


def test_another_host_is_tunnelled_and_nothing_of_it_is_kept(stage: TlsStage) -> None:
    stage.upstream.script = [answer(200, UNREAD.encode(), [("x-theirs", "1")])]
    done = curl(stage, f"https://other.example/{UNREAD}", "-d", UNREAD)
    assert done.stdout.endswith(UNREAD.encode())
    # It is their certificate that curl has accepted, and their head as they wrote it.
    assert done.stdout.startswith(b"HTTP/1.1 200 Told")
    assert stage.exchanges() == []


def test_a_host_that_a_user_names_is_opened(tmp_path: Path) -> None:
    with tls_stage(tmp_path, config='[server]\ntls_hosts = ["other.example"]\n') as stage:
        stage.upstream.script = [says(CHAT_REPLY)]
        ask(stage, url="https://other.example/v1/chat/completions")
        (line,) = stage.exchanges()
        assert (line["provider"], line["state"]) == ("other.example", "finished")


def test_a_request_in_clear_text_is_passed_on_and_not_recorded(tmp_path: Path) -> None:
    with tls_stage(tmp_path) as stage, upstream_in_background() as plain:
        plain.script = [answer(200, b"clear", framing="chunked")]
        stage.way.reach = ("127.0.0.1", plain.port)
        done = curl(stage, "http://plain.example/a?b=1", "-d", "words")
        assert done.stdout.endswith(b"clear"), done
        (seen,) = plain.seen
        assert (seen.method, seen.target, seen.body) == ("POST", "/a?b=1", b"words")
        assert seen.header("host") == "plain.example"
        assert seen.header("proxy-authorization") == ""
        assert stage.exchanges() == []


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_an_upload_without_a_length_arrives_whole(stage: TlsStage, version: str) -> None:
    stage.upstream.script = [answer(200, b'{"id": "file-1"}')]
    sent = b"a line of many\n" * 50_000
    done = curl(stage, "https://api.openai.com/v1/files", version, "-X", "POST", "-T", "-", given=sent)
    assert done.stdout.endswith(b'{"id": "file-1"}'), done
    (seen,) = stage.upstream.seen
    assert seen.body == sent
    assert seen.header("content-length") == ""
    (line,) = stage.exchanges()
    passed = [each for each in stage.gateway.api(f"/api/exchanges/{line['id']}")["facts"] if each["kind"] == "body"]
    assert [each["size"] for each in passed if each["of"] == "request"] == [len(sent)]


def test_a_host_with_a_dot_at_its_end_is_the_same_host(stage: TlsStage) -> None:
    done = ask(stage, "--connect-to", "api.openai.com.:443:api.openai.com.:443", url=URL.replace(".com/", ".com./"))
    assert b" 200" in done.stdout, done
    assert [each["state"] for each in stage.exchanges()] == ["finished"]


# --- who is refused ---------------------------------------------------------------------------------


def say(stage: TlsStage, data: bytes) -> bytes:
    """All that the proxy says to these bytes until it hangs up."""
    with socket.create_connection(("127.0.0.1", stage.port), timeout=30) as talk:
        talk.sendall(data)
        said = b""
        with suppress(ConnectionError):
            while some := talk.recv(65536):
                said += some
        return said


def login(stage: TlsStage) -> bytes:
    parts = urlsplit(stage.proxy)
    coded = base64.b64encode(f"{parts.username}:{parts.password}".encode())
    return b"Proxy-Authorization: Basic " + coded + b"\r\n"


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"Proxy-Authorization: Basic !!\r\n",
        b"Proxy-Authorization: Bearer abc\r\n",
        b"Proxy-Authorization: Basic " + base64.b64encode(b"czE:0000") + b"\r\n",
        b"Proxy-Authorization: Basic " + base64.b64encode(b"\xff:\xff") + b"\r\n",
    ],
)
def test_a_program_without_the_password_of_a_run_is_refused(refusing: TlsStage, wrong: bytes) -> None:
    for line in (b"CONNECT api.openai.com:443 HTTP/1.1", b"GET http://other.example/ HTTP/1.1"):
        said = say(refusing, line + b"\r\n" + wrong + b"\r\n")
        assert said.startswith(b"HTTP/1.1 407 ")
        assert b"proxy-authenticate: Basic" in said
    assert refusing.way.asked == []


def test_a_password_is_good_for_its_session_and_its_data_folder() -> None:
    def authorization(name: str, password: str) -> str:
        return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"

    name, password = login_of("token-1", "a: b/ü")
    assert session_in(authorization(name, password), "token-1") == "a: b/ü"
    assert session_in(authorization(name, password), "token-2") is None
    assert session_in(authorization(login_of("token-1", "other")[0], password), "token-1") is None


@pytest.mark.parametrize(
    "target",
    [b"127.0.0.1:80", b"localhost:443", b"[::1]:443", b"[::ffff:127.0.0.1]:443", b"169.254.169.254:80", b"0.0.0.0:1"],
)
def test_no_tunnel_leads_to_this_machine(refusing: TlsStage, target: bytes) -> None:
    said = say(refusing, b"CONNECT " + target + b" HTTP/1.1\r\n" + login(refusing) + b"\r\n")
    assert said.startswith(b"HTTP/1.1 403 ")
    assert refusing.way.asked == []


def test_no_request_in_clear_text_leads_to_this_machine_by_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = socket.getaddrinfo

    def rebound(host: Any, *words: Any, **named: Any) -> Any:
        return look_up("127.0.0.1" if host == "rebound.example" else host, *words, **named)

    with tls_stage(tmp_path, variables={"http_proxy": ""}) as stage, upstream_in_background() as plain:
        monkeypatch.setattr(socket, "getaddrinfo", rebound)
        line = b"GET http://rebound.example:%d/ HTTP/1.1\r\nHost: rebound.example\r\n" % plain.port
        said = say(stage, line + login(stage) + b"\r\n")
        assert said.startswith(b"HTTP/1.1 403 "), said
        assert plain.seen == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (b"CONNECT api.openai.com HTTP/1.1\r\n", b"400"),
        (b"CONNECT api.openai.com:99999 HTTP/1.1\r\n", b"400"),
        (b"CONNECT http://api.openai.com/ HTTP/1.1\r\n", b"400"),
        (b"CONNECT a\xffb:443 HTTP/1.1\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n", b"400"),
        (b"GET https://other.example/ HTTP/1.1\r\n", b"400"),
        (b"GET http://user:pass@other.example/ HTTP/1.1\r\n", b"400"),
        (b"GET http://[::1/ HTTP/1.1\r\n", b"400"),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\n", b"403"),
    ],
)
def test_what_names_no_host_is_refused(refusing: TlsStage, asked: bytes, status: bytes) -> None:
    assert say(refusing, asked + login(refusing) + b"\r\n").split(b" ")[1] == status


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x00\xa5\r\n\r\n", b"CONNECT a:1 HTTP/9\r\n\r\n", b"x: y\r\n z\r\n\r\n"]
)
def test_garbage_is_refused(refusing: TlsStage, garbage: bytes) -> None:
    assert say(refusing, garbage).startswith(b"HTTP/1.1 400 ")


def test_an_endless_head_is_refused(refusing: TlsStage) -> None:
    assert say(refusing, b"CONNECT a:1 HTTP/1.1\r\nx: " + b"y" * 20_000).startswith(b"HTTP/1.1 431 ")


# --- TLS --------------------------------------------------------------------------------------------


@contextmanager
def opened(stage: TlsStage, context: ssl.SSLContext, name: str | None = "api.openai.com") -> Iterator[ssl.SSLSocket]:
    """TLS through the proxy to OpenAI's host."""
    with socket.create_connection(("127.0.0.1", stage.port), timeout=30) as talk:
        talk.sendall(b"CONNECT api.openai.com:443 HTTP/1.1\r\n" + login(stage) + b"\r\n")
        said = b""
        while b"\r\n\r\n" not in said:
            said += talk.recv(4096)
        assert said.startswith(b"HTTP/1.1 200 ")
        with context.wrap_socket(talk, server_hostname=name) as secured:
            yield secured


def trusting(stage: TlsStage) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(stage.bundle))


def test_tls_for_a_name_with_a_dot_at_its_end_is_for_that_name(stage: TlsStage) -> None:
    context = trusting(stage)
    context.check_hostname = False  # Python's own check knows no such names, and Node's does
    with opened(stage, context, "api.openai.com.") as secured:
        assert secured.version()


def test_a_client_that_does_not_trust_us_is_told_of(stage: TlsStage) -> None:
    with pytest.raises(ssl.SSLCertVerificationError), opened(stage, ssl.create_default_context()):
        pass
    while not (refused := stage.gateway.api("/api/proxy?session=s1")["refused"]):
        time.sleep(0.01)
    assert refused == [{"host": "api.openai.com", "why": "unknown ca", "is_tunnelled": False}]
    assert stage.gateway.api("/api/proxy?session=other")["refused"] == []
    assert b"200" in ask(stage).stdout  # others are served on


def test_a_client_that_does_not_trust_us_is_tunnelled_if_the_user_wishes(tmp_path: Path) -> None:
    with tls_stage(tmp_path, config='[server]\ntls_refused = "tunnel"\n') as stage:
        stage.upstream.script = [says(CHAT_REPLY)]
        vendors = str(tmp_path / "vendors.pem")
        assert ask(stage, "--cacert", vendors).returncode == 60
        while not stage.gateway.api("/api/proxy?session=s1")["refused"]:
            time.sleep(0.01)
        assert b"200" in ask(stage, "--cacert", vendors).stdout
        assert len(stage.upstream.seen) == 1
        assert stage.exchanges() == []


def test_a_client_without_sni_or_alpn_speaks_http_1(stage: TlsStage) -> None:
    context = trusting(stage)
    context.check_hostname = False
    with opened(stage, context, None) as talk:
        assert talk.selected_alpn_protocol() is None
        talk.sendall(b"GET /v1/models HTTP/1.1\r\nHost: api.openai.com\r\nConnection: close\r\n\r\n")
        assert talk.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_request_for_another_host_than_the_connections_is_refused(stage: TlsStage) -> None:
    with opened(stage, trusting(stage)) as talk:
        talk.sendall(b"GET /v1/models HTTP/1.1\r\nHost: api.anthropic.com\r\n\r\n")
        assert talk.recv(65536).startswith(b"HTTP/1.1 421 ")
    assert stage.upstream.seen == []


def test_a_vendors_foreign_certificate_is_refused_in_the_clients_dialect(tmp_path: Path) -> None:
    foreign = context_of(trustme.CA(), "api.openai.com")
    with tls_stage(tmp_path, vendor=lambda _authority: foreign) as stage:
        stage.upstream.script = [says(CHAT_REPLY)]
        told, _, body = ask(stage, "--http1.1").stdout.partition(b"\r\n\r\n")
        assert int(told.split(b" ")[1]) >= 500
        assert "not trusted here" in json.loads(body)["error"]["message"]
        assert stage.upstream.seen == []
        assert stage.exchanges()[0]["state"] == "failed"


# --- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_an_answer_that_breaks_off_does_not_look_whole(stage: TlsStage, version: str) -> None:
    event = b'data: {"id":"c","object":"chat.completion.chunk","choices":[]}\n\n'
    stage.upstream.script = [cut(head(200, [("Content-Type", "text/event-stream")]), chunk(event), how="eof")]
    done = ask(stage, version, body={**ASK, "stream": True})
    assert done.returncode != 0 or b"error" in done.stdout
    assert stage.exchanges()[0]["state"] == "failed"


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_vendor_that_stalls_is_given_up(tmp_path: Path, version: str) -> None:
    event = b'data: {"id":"c","object":"chat.completion.chunk","choices":[]}\n\n'
    with tls_stage(tmp_path, config="[providers.openai]\nstream_idle_timeout_ms = 300\n") as stage:
        stage.upstream.script = [stall(head(200, [("Content-Type", "text/event-stream")]), chunk(event))]
        done = ask(stage, version, body={**ASK, "stream": True})
        assert done.returncode != 0 or b"error" in done.stdout
        (shown,) = stage.exchanges()
    assert (shown["state"], shown["fault"]) == ("failed", "timeout_idle")


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_stream_is_delivered_as_it_is_sent(stage: TlsStage, version: str) -> None:
    gate = asyncio.Event()
    first, last = (f'data: {{"id":"c","choices":[{{"index":0,"delta":{{"content":"{n}"}}}}]}}\n\n' for n in "ab")
    stage.upstream.script = [
        pieces(
            head(200, [("Content-Type", "text/event-stream")]), chunk(first.encode()), gate, chunk(last.encode()), LAST
        )
    ]
    body = json.dumps({**ASK, "stream": True})
    command = ["curl", "-sSN", "-m", "60", version, URL, *HEADER_WORDS, "-d", body]
    variables = {"PATH": os.environ["PATH"], **stage.variables()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables) as running:
        assert running.stdout.readline().decode() == first.split("\n")[0] + "\n"
        stage.loop.call_soon_threadsafe(gate.set)
        assert last.split("\n")[0] in running.stdout.read().decode()
    assert running.returncode == 0


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_large_answer_and_a_large_request_pass_whole(stage: TlsStage, version: str) -> None:
    text = "x" * 3_000_000
    reply = {**CHAT_REPLY, "choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
    stage.upstream.script = [says(reply)]
    asked = {**ASK, "messages": [{"role": "user", "content": text}]}
    done = ask(stage, version, body=asked)
    assert json.loads(done.stdout.partition(b"\r\n\r\n")[2]) == reply
    assert stage.upstream.seen[0].json() == asked


def test_a_client_that_leaves_ends_the_exchange(stage: TlsStage) -> None:
    stage.upstream.script = [stall()]
    with opened(stage, trusting(stage)) as talk:
        body = json.dumps(ASK).encode()
        lines = [b"POST /v1/chat/completions HTTP/1.1", b"Host: api.openai.com", b"Content-Length: %d" % len(body)]
        talk.sendall(b"\r\n".join([*lines, b"", b""]) + body)
        asyncio.run_coroutine_threadsafe(stage.upstream.arrived(1), stage.loop).result(60)
    while stage.exchanges()[0]["state"] != "cancelled":
        time.sleep(0.01)
