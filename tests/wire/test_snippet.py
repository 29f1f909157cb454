import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.wire.call import RequestTemplate, Variable
from sightline.wire.snippet import LONGEST_ARGUMENT, curl, python
from tests.background import handling

KEY = Variable("ACME_API_KEY", "Bearer ", help="Get one at https://acme.example/keys.")
TRACE = Variable("ACME_TRACE", optional=True)
JSON = ("content-type", "application/json")
SECRET = "sk-$HOME-`id`-\"quoted\"-'too'-!x"


class Listener:
    """Takes one request after another; `gate` holds back the second half of a stream until it is opened."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.status = 200
        self.answer = b"data: one\n\ndata: two\n\n"
        self.gate: threading.Event | None = None

    @property
    def last(self) -> tuple[str, str, dict[str, str], bytes]:
        return self.seen[-1]


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            listener.seen.append((self.command, self.path, headers, body))
            self.send_response(listener.status)
            if listener.status == 302:
                self.send_header("location", f"{listener.url}/elsewhere")
            self.end_headers()
            first, _, second = listener.answer.partition(b"\n\n")
            self.wfile.write(first + b"\n\n")
            self.wfile.flush()
            if listener.gate is not None:
                listener.gate.wait(60)
            self.wfile.write(second)

        do_GET = do_POST  # noqa: N815 - the name is the library's

    with handling(Handler) as listener.url:
        yield listener


@pytest.fixture(scope="module")
def shared() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


@pytest.fixture
def listener(shared: Listener) -> Listener:
    shared.seen.clear()
    shared.status, shared.gate = 200, None
    return shared


SHELLS = [
    pytest.param(
        shell,
        marks=pytest.mark.skipif(
            not (shutil.which("curl") and shutil.which(shell)), reason=f"curl and {shell} are not both installed here"
        ),
    )
    for shell in ("sh", "bash")
]
RUNNERS = [*SHELLS, "python"]
EVERY_RUNNER = pytest.mark.parametrize("runner", RUNNERS)


def command(runner: str, call: RequestTemplate) -> tuple[list[str], str]:
    return ([sys.executable, "-"], python(call)) if runner == "python" else ([runner], curl(call))


def run(runner: str, call: RequestTemplate, **variables: str) -> subprocess.CompletedProcess[bytes]:
    words, script = command(runner, call)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", **variables}
    return subprocess.run(words, input=script.encode(), env=environment, capture_output=True, check=False)


BODIES = {
    "json": json.dumps({"text": "Grüße, 世界 🌍"}, ensure_ascii=False).encode(),
    "quotes": b"""{"a": "it's \\"so\\"", 'b': '''}""",
    "shell": b"$HOME ${PATH} $(id) `id` ! !! \\ \\n * ? ~ # & | ; < > %s %d {a,b}",
    "lines": b"first\nsecond\n\n",
    "file": b"@/etc/hostname",
    "dash": b"-n -e --",
    "empty": b"",
    "control": b"tab\there\r\nbell\x07 del\x7f nul\x00 100% -e \\ 'x'",
    "dash and control": b"-n\x01",
    "binary": bytes(range(256)),
    "long": b'{"text": "' + b"it's long " * (LONGEST_ARGUMENT // 5) + b'"}',
}


@EVERY_RUNNER
@pytest.mark.parametrize("name", BODIES)
def test_the_body_arrives_byte_for_byte(runner: str, name: str, listener: Listener) -> None:
    call = RequestTemplate("POST", f"{listener.url}/v1/chat", (JSON,), BODIES[name])
    finished = run(runner, call)
    assert finished.stderr == b""
    assert finished.stdout == listener.answer
    assert finished.returncode == 0
    method, path, headers, body = listener.last
    assert (method, path, headers["content-type"]) == ("POST", "/v1/chat", "application/json")
    assert body == BODIES[name]


@EVERY_RUNNER
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_body_arrives_byte_for_byte(runner: str, listener: Listener, body: bytes) -> None:
    assert run(runner, RequestTemplate("POST", listener.url, (JSON,), body)).returncode == 0
    assert listener.last[3] == body


@EVERY_RUNNER
def test_headers_and_address_arrive_as_they_are_with_the_secrets_of_the_environment(
    runner: str, listener: Listener
) -> None:
    headers = (
        JSON,
        ("accept", "text/event-stream"),
        ("Authorization", KEY),
        ("x-title", 'it\'s $5 for "two" `of` them!'),
        ("x-around", Variable("ACME_API_KEY", "a$b'", "'c`d")),
        ("x-trace", TRACE),
        ("x-trace-around", Variable("ACME_TRACE", 'key="', '"', optional=True)),
        ("x-missing", Variable("ACME_MISSING", optional=True)),
        ("x-empty", ""),
    )
    call = RequestTemplate("POST", f"{listener.url}/v1/m:go?alt=sse&q=[1-3]{{a,b}}$x", headers, b"{}")
    finished = run(runner, call, ACME_API_KEY=SECRET, ACME_TRACE="t 1")
    assert finished.returncode == 0, finished.stderr
    _, path, seen, _ = listener.last
    assert path == "/v1/m:go?alt=sse&q=[1-3]{a,b}$x"
    assert seen["accept"] == "text/event-stream"
    assert seen["authorization"] == f"Bearer {SECRET}"
    assert seen["x-title"] == headers[3][1]
    assert seen["x-around"] == f"a$b'{SECRET}'c`d"
    assert (seen["x-trace"], seen["x-trace-around"], seen["x-empty"]) == ("t 1", 'key="t 1"', "")
    assert "x-missing" not in seen


def test_a_command_reads_like_one_that_a_person_wrote() -> None:
    call = RequestTemplate("POST", "https://e.org/v1", (JSON, ("authorization", KEY), ("x-trace", TRACE)), b'{"a": 1}')
    assert curl(call) == (
        "curl --no-progress-meter --fail-with-body --no-buffer --globoff -X POST 'https://e.org/v1' \\\n"
        "  -H 'content-type: application/json' \\\n"
        '  -H "authorization: Bearer ${ACME_API_KEY:?}" \\\n'
        '  ${ACME_TRACE:+-H} ${ACME_TRACE:+"x-trace: ${ACME_TRACE}"} \\\n'
        "  --data-binary '{\"a\": 1}'\n"
    )


@EVERY_RUNNER
@pytest.mark.parametrize("body", [b"{}", BODIES["binary"]], ids=["text", "binary"])
@pytest.mark.parametrize("variables", [{}, {"ACME_API_KEY": ""}], ids=["unset", "empty"])
def test_a_missing_key_ends_it_with_its_name_before_anything_is_sent(
    runner: str, body: bytes, variables: dict[str, str], listener: Listener
) -> None:
    finished = run(runner, RequestTemplate("POST", listener.url, (("authorization", KEY),), body), **variables)
    assert finished.returncode != 0
    assert b"ACME_API_KEY" in finished.stderr
    assert b"Traceback" not in finished.stderr
    assert not listener.seen


@EVERY_RUNNER
@pytest.mark.parametrize("slash", ["", "/"])
def test_an_address_may_come_from_the_environment(runner: str, slash: str, listener: Listener) -> None:
    call = RequestTemplate("POST", Variable("ACME_URL", suffix="/v1/chat?a=b", help="It is the address."), (), b"{}")
    assert run(runner, call, ACME_URL=listener.url + slash).returncode == 0
    assert listener.last[1] == "/v1/chat?a=b"
    bare = RequestTemplate("POST", Variable("ACME_URL"), (), b"{}")
    assert run(runner, bare, ACME_URL=f"{listener.url}/v2/").returncode == 0
    assert listener.last[1] == "/v2/"
    finished = run(runner, call)
    assert finished.returncode != 0
    assert b"ACME_URL" in finished.stderr


@EVERY_RUNNER
def test_an_error_is_printed_and_is_a_failure(runner: str, listener: Listener) -> None:
    listener.status = 401
    finished = run(runner, RequestTemplate("POST", listener.url, (), b"{}"))
    assert finished.returncode == (1 if runner == "python" else 22)
    assert finished.stdout == listener.answer
    assert b"401" in finished.stderr


@EVERY_RUNNER
def test_a_key_is_not_sent_on_to_another_address(runner: str, listener: Listener) -> None:
    listener.status = 302
    finished = run(runner, RequestTemplate("POST", listener.url, (("authorization", KEY),), b"{}"), ACME_API_KEY="k")
    assert finished.stdout == listener.answer
    assert len(listener.seen) == 1


@EVERY_RUNNER
def test_refused_connection_is_a_one_line_error(runner: str) -> None:
    with listening() as gone:
        url = gone.url
    finished = run(runner, RequestTemplate("POST", url, (), b"{}"))
    assert finished.returncode != 0
    assert len(finished.stderr.splitlines()) == 1


@EVERY_RUNNER
def test_a_stream_is_printed_as_it_comes(runner: str, listener: Listener) -> None:
    listener.gate = threading.Event()
    words, script = command(runner, RequestTemplate("POST", listener.url, (), b"{}"))
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, env={"PATH": os.environ["PATH"]}) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(script.encode())
        process.stdin.close()
        assert process.stdout.readline() == b"data: one\n"
        listener.gate.set()
        assert process.stdout.read() == b"\ndata: two\n\n"


@EVERY_RUNNER
def test_a_call_that_only_asks_has_no_body(runner: str, listener: Listener) -> None:
    assert run(runner, RequestTemplate("GET", listener.url, (("User-Agent", "mine"),), b"")).returncode == 0
    method, _, headers, body = listener.last
    assert (method, body, headers["user-agent"]) == ("GET", b"", "mine")
    assert "content-length" not in headers


def test_plain_secret_header_becomes_a_variable() -> None:
    call = RequestTemplate(
        "POST", "http://127.0.0.1:9/x", (("X-Session-Token", "tok-0123456789"), ("x-team", "blue")), b"{}"
    )
    for printed in (curl(call), python(call)):
        assert "tok-0123456789" not in printed
        assert "X_SESSION_TOKEN" in printed
        assert "blue" in printed
