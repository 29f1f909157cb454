"""Requests that are signed on their way out reach scripted endpoints that verify the signature."""

import base64
import hashlib
import hmac
import json
import shutil
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sightline.dialects.registry import unregister
from tests.background import upstream_in_background
from tests.gateway_server import Served, served
from tests.http_call import call
from tests.relay_stage import REQUESTS
from tests.upstream import Seen, Upstream, chunk, head, pieces, says, streams

REPLY = {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Hello"}}]}
ACCESS, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEXAMPLETOKEN"
CLIENT_KEY = "sk-of-the-client-0123456789"


def stream(server: Served, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
    """The media type of an answer, and all of its bytes."""
    answer = call("POST", server.url + path, body, token=CLIENT_KEY, headers={"x-api-key": CLIENT_KEY})
    assert answer.status == 200, answer
    return answer.headers["content-type"], answer.body


def post(server: Served, path: str, body: dict[str, Any]) -> bytes:
    return stream(server, path, body)[1]


def verify_aws(seen: Seen, region: str, service: str) -> None:
    """Compute the signature anew from what arrived, step by step as AWS documents it, and compare."""
    scheme, _, rest = seen.header("authorization").partition(" ")
    fields = dict(piece.strip().split("=", 1) for piece in rest.split(","))
    names = fields["SignedHeaders"].split(";")
    path, _, query = seen.target.partition("?")
    canonical = [seen.method, quote(path, safe="/-_.~"), query]
    canonical += [f"{name}:{seen.header(name)}" for name in names]
    canonical += ["", ";".join(names), hashlib.sha256(seen.body).hexdigest()]
    at = seen.header("x-amz-date")
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = b"AWS4" + SECRET.encode()
    for step in (at[:8], region, service, "aws4_request"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    to_sign = "\n".join((scheme, at, scope, digest))
    assert scheme == "AWS4-HMAC-SHA256"
    assert fields["Credential"] == f"{ACCESS}/{scope}"
    assert {"host", "x-amz-date", "x-amz-security-token", "content-type"} <= set(names)
    assert fields["Signature"] == hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


@pytest.fixture
def _aws(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def bedrock(base_url: str, more: str = "") -> str:
    return f"""
        [providers.bedrock]
        base_url = "{base_url}"
        sign = "aws-sigv4"
        sign_options = {{ region = "us-west-2", service = "bedrock" }}
        {more}
        """


def vertex(base_url: str, account: Path, name: str = "vertex", dialect: str = "gemini") -> str:
    return f"""
        [providers.{name}]
        dialect = "{dialect}"
        base_url = "{base_url}"
        version = ""
        sign = "google-service-account"
        sign_options = {{ file = "{account}" }}
        """


TOKEN_ANSWER = {"access_token": "ya29.token-0123456789", "expires_in": 3599, "token_type": "Bearer"}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP"}]}


def service_account(folder: Path, upstream: Upstream, key: rsa.RSAPrivateKey | None = None) -> Path:
    key = key or rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {"client_email": "me@p.iam.gserviceaccount.com", "private_key": pem, "private_key_id": "k1"}
    file = folder / "account.json"
    file.write_text(json.dumps({**account, "token_uri": f"{upstream.url}/token"}))
    return file


def stored(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in (folder / "data").rglob("*") if file.is_file())


@pytest.mark.usefixtures("_aws")
def test_bedrock_gets_signed_requests_of_any_dialect_and_no_key_of_the_client(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        echo = {**REPLY, "choices": [{**REPLY["choices"][0], "message": {"content": f"you are {TOKEN}"}}]}  # type: ignore[index,dict-item]
        upstream.script = [says({"error": {"message": "busy"}}, 503), says(REPLY), says(REPLY), says(echo)]
        config = bedrock(f"{upstream.url}/openai/v1", "request_max_retries = 2")
        with served(tmp_path, config) as server:
            assert b"Hello" in post(server, "/p/bedrock/v1/chat/completions", REQUESTS["openai-chat"])
            assert b"Hello" in post(server, "/p/bedrock/v1/messages", REQUESTS["anthropic"])
            assert TOKEN.encode() not in post(server, "/p/bedrock/v1/chat/completions", REQUESTS["openai-chat"])
    assert len(upstream.seen) == 4  # the first was sent again, signed anew
    for seen in upstream.seen:
        verify_aws(seen, "us-west-2", "bedrock")
        assert seen.target == "/openai/v1/chat/completions"
        assert CLIENT_KEY not in str(seen.headers)
    for secret in (SECRET, TOKEN, CLIENT_KEY):
        assert secret.encode() not in stored(tmp_path)


@pytest.mark.usefixtures("_aws")
def test_a_path_that_is_passed_on_is_signed_with_its_body(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says({"data": []})]
        with served(tmp_path, bedrock(f"{upstream.url}/v1")) as server:
            post(server, "/p/bedrock/v1/batches", {"input_file_id": "f"})
    seen = upstream.seen[0]
    verify_aws(seen, "us-west-2", "bedrock")
    assert seen.json() == {"input_file_id": "f"}


def test_without_credentials_nothing_is_sent_and_the_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with upstream_in_background() as upstream:
        with served(tmp_path, bedrock(f"{upstream.url}/v1")) as server:
            refused = call("POST", f"{server.url}/p/bedrock/v1/chat/completions", REQUESTS["openai-chat"])
        assert refused.status >= 400
        assert "AWS_ACCESS_KEY_ID is not set" in refused.json()["error"]["message"]
    assert not upstream.seen


def test_vertex_gets_a_token_that_the_service_account_has_signed_for(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    with upstream_in_background() as upstream:
        upstream.script = [says(TOKEN_ANSWER), says(GEMINI), says(GEMINI)]
        file = service_account(tmp_path, upstream, key)
        place = "/v1/projects/p/locations/eu/publishers/google"
        with served(tmp_path, vertex(f"{upstream.url}{place}", file)) as server:
            assert b"Hello" in post(
                server, "/p/vertex/v1beta/models/gemini-3.8-flash:generateContent", REQUESTS["gemini"]
            )
            assert b"Hello" in post(server, "/p/vertex/v1/chat/completions", REQUESTS["openai-chat"])
    asked, *sent = upstream.seen
    form = parse_qs(asked.body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    signed, _, signature = form["assertion"][0].rpartition(".")
    key.public_key().verify(_bytes(signature), signed.encode(), padding.PKCS1v15(), SHA256())
    header, claims = (json.loads(_bytes(part)) for part in signed.split("."))
    assert header == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    assert (claims["iss"], claims["aud"]) == ("me@p.iam.gserviceaccount.com", f"{upstream.url}/token")
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert [seen.header("authorization") for seen in sent] == [f"Bearer {TOKEN_ANSWER['access_token']}"] * 2
    assert [seen.target for seen in sent] == [
        f"{place}/models/gemini-3.8-flash:generateContent",
        f"{place}/models/m:generateContent",
    ]
    assert CLIENT_KEY not in str([seen.headers for seen in sent])
    assert str(TOKEN_ANSWER["access_token"]).encode() not in stored(tmp_path)


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# --- streams ----------------------------------------------------------------------------------------


def _frame(event: dict[str, Any]) -> bytes:
    """A message of `application/vnd.amazon.eventstream`: lengths, headers and payload with two checksums."""
    names = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2) + value.encode()
        for name, value in names.items()
    )
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode()
    prelude = (len(headers) + len(payload) + 16).to_bytes(4) + len(headers).to_bytes(4)
    message = prelude + zlib.crc32(prelude).to_bytes(4) + headers + payload
    return message + zlib.crc32(message).to_bytes(4)


@pytest.mark.usefixtures("_aws")
def test_bedrock_streams_to_clients_of_any_dialect(tmp_path: Path) -> None:
    chunks = [
        {"id": "r", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        {"id": "r", "model": "m", "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}]},
    ]
    events = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    with upstream_in_background() as upstream:
        upstream.script = [streams(*events, b"data: [DONE]\n\n")]
        with served(tmp_path, bedrock(f"{upstream.url}/openai/v1")) as server:
            kind, same = stream(server, "/p/bedrock/v1/chat/completions", {**REQUESTS["openai-chat"], "stream": True})
            assert (kind.partition(";")[0], same) == ("text/event-stream", b"".join(events) + b"data: [DONE]\n\n")
            _, other = stream(server, "/p/bedrock/v1/messages", {**REQUESTS["anthropic"], "stream": True})
            assert b"event: message_stop" in other
    for seen in upstream.seen:
        verify_aws(seen, "us-west-2", "bedrock")


@pytest.mark.usefixtures("_aws")
def test_the_event_stream_of_invoke_model_passes_as_it_is_and_its_request_is_signed(tmp_path: Path) -> None:
    frames = [_frame({"type": name}) for name in ("message_start", "content_block_delta", "message_stop")]
    kind = "application/vnd.amazon.eventstream"
    with upstream_in_background() as upstream:
        upstream.script = [pieces(head(200, [("Content-Type", kind)]), *map(chunk, frames), chunk(b""))]
        with served(tmp_path, bedrock(upstream.url)) as server:
            path = "/model/anthropic.claude-sonnet-5-v1%3A0/invoke-with-response-stream"
            body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}
            assert stream(server, f"/p/bedrock{path}", body) == (kind, b"".join(frames))
            (line,) = server.api("/api/exchanges")["exchanges"]
            assert (line["dialect"], line["status"]) == ("raw-http", 200)
    (seen,) = upstream.seen
    verify_aws(seen, "us-west-2", "bedrock")
    assert (seen.target, seen.json()) == (path, body)


CLAUDE = [
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    b'"model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"Hello"}}\n\n',
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":2}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]


def test_vertex_streams_gemini_with_the_token(tmp_path: Path) -> None:
    event = b"data: " + json.dumps(GEMINI).encode() + b"\r\n\r\n"
    with upstream_in_background() as upstream:
        upstream.script = [says(TOKEN_ANSWER), streams(event)]
        place = "/v1/projects/p/locations/eu/publishers/google"
        with served(tmp_path, vertex(f"{upstream.url}{place}", service_account(tmp_path, upstream))) as server:
            path = "/p/vertex/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
            assert stream(server, path, REQUESTS["gemini"])[1] == event
            _, other = stream(server, "/p/vertex/v1/messages", {**REQUESTS["anthropic"], "stream": True})
            assert b"Hello" in other
            assert b"event: message_stop" in other
    for seen in upstream.seen[1:]:
        assert seen.target.endswith(":streamGenerateContent?alt=sse")
        assert seen.header("authorization") == f"Bearer {TOKEN_ANSWER['access_token']}"


def test_claude_on_vertex_streams_to_clients_of_any_dialect(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "plugins" / "vertex_claude.py"
    (tmp_path / "plugins").mkdir()
    shutil.copy(example, tmp_path / "plugins")
    with upstream_in_background() as upstream:
        whole = {
            "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Hello"}], "usage": {"input_tokens": 3, "output_tokens": 2},
        }  # fmt: skip
        upstream.script = [says(TOKEN_ANSWER), streams(*CLAUDE), streams(*CLAUDE), says(whole)]
        place = "/v1/projects/p/locations/eu/publishers/anthropic"
        account = service_account(tmp_path, upstream)
        config = vertex(f"{upstream.url}{place}", account, "vertex-claude", "vertex-claude")
        config += '[plugins]\nuse = ["vertex_claude.py"]\n'
        try:
            with served(tmp_path, config) as server:
                asked = {**REQUESTS["anthropic"], "stream": True}
                assert stream(server, "/p/vertex-claude/v1/messages", asked)[1].count(b"event: message_stop") == 1
                _, chat = stream(
                    server, "/p/vertex-claude/v1/chat/completions", {**REQUESTS["openai-chat"], "stream": True}
                )
                assert b'"content":"Hello"' in chat
                assert chat.endswith(b"data: [DONE]\n\n")
                assert b"Hello" in post(server, "/p/vertex-claude/v1/messages", REQUESTS["anthropic"])
                # What Google's own client sends passes as it is, and is signed.
                upstream.script = [streams(*CLAUDE)]
                raw = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": [], "stream": True}
                path = "/p/vertex-claude/models/claude-sonnet-5:streamRawPredict"
                assert stream(server, path, raw)[1] == b"".join(CLAUDE)
        finally:
            unregister("vertex-claude")
    _, *sent = upstream.seen
    model = REQUESTS["anthropic"]["model"]
    assert [seen.target.rpartition("/")[2] for seen in sent] == [
        f"{model}:streamRawPredict",
        f"{REQUESTS['openai-chat']['model']}:streamRawPredict",
        f"{model}:rawPredict",
        "claude-sonnet-5:streamRawPredict",
    ]
    for seen in sent:
        assert seen.target.startswith(f"{place}/models/")
        assert seen.header("authorization") == f"Bearer {TOKEN_ANSWER['access_token']}"
        assert (seen.json()["anthropic_version"], "model" in seen.json()) == ("vertex-2023-10-16", False)
