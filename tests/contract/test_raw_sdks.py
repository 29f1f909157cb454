"""The vendors' own SDKs through the gateway, on paths that no dialect serves: files, batches, embeddings and more."""

import io
import json
import re
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.gateway_server import Served, served
from tests.raw_upstream import RawRequest, RawUpstream, raw_upstream

SOUND = bytes(range(256)) * 8
BATCH = b'{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"model":"m","input":"hi"}}\n'


class FakeVendor:
    """Enough of the three vendors' APIs for their SDKs to be content. It keeps the files that are uploaded."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def __call__(self, request: RawRequest) -> None:
        path = request.target.partition("?")[0]
        for method, pattern, answer in self.routes:
            if request.method == method and (found := re.fullmatch(pattern, path)):
                answer(self, request, *found.groups())
                return
        say(request, {"error": {"message": f"no {request.method} {path}", "type": "x"}}, 404)

    def upload(self, request: RawRequest) -> None:
        kind = request.header("content-type")
        form = BytesParser(policy=HTTP).parsebytes(f"content-type: {kind}\r\n\r\n".encode() + request.read())
        part = next(each for each in form.iter_parts() if each.get_filename())
        name = f"file_{len(self.files)}"
        self.files[name] = part.get_payload(decode=True)
        say(request, {"id": name, "object": "file", "type": "file", "bytes": len(self.files[name]), "created_at": 1,
                      "filename": part.get_filename(), "purpose": "batch", "status": "processed",
                      "mime_type": "text/plain", "size_bytes": len(self.files[name])})  # fmt: skip

    def download(self, request: RawRequest, name: str) -> None:
        request.answer(200, self.files[name], ("content-type", "application/octet-stream"))

    def delete(self, request: RawRequest, name: str) -> None:
        self.files.pop(name, None)
        say(request, {"id": name, "object": "file", "type": "file_deleted", "deleted": True})

    def batch(self, request: RawRequest) -> None:
        body = json.loads(request.read())
        if "requests" in body:
            say(request, {"id": "msgbatch_1", "type": "message_batch", "processing_status": "in_progress",
                          "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
                          "request_counts": {"processing": len(body["requests"]), "succeeded": 0, "errored": 0,
                                             "canceled": 0, "expired": 0}})  # fmt: skip
        else:
            made = {"id": "batch_1", "object": "batch", "status": "validating", "created_at": 1}
            say(request, body | made)

    def embed(self, request: RawRequest) -> None:
        texts = json.loads(request.read())["input"]
        say(request, {"object": "list", "model": "e", "usage": {"prompt_tokens": 4, "total_tokens": 4},
                      "data": [{"object": "embedding", "index": n, "embedding": [0.5, float(n)]}
                               for n in range(len([texts] if isinstance(texts, str) else texts))]})  # fmt: skip

    def embed_contents(self, request: RawRequest, _name: str) -> None:
        count = len(json.loads(request.read())["requests"])
        say(request, {"embeddings": [{"values": [0.25, float(n)]} for n in range(count)]})

    def compact(self, request: RawRequest) -> None:
        request.read()
        say(request, {"id": "resp_c", "object": "response.compaction", "created_at": 1, "output": [],
                      "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                                "input_tokens_details": {"cached_tokens": 0},
                                "output_tokens_details": {"reasoning_tokens": 0}}})  # fmt: skip

    def response(self, request: RawRequest, name: str) -> None:
        say(request, {"id": name, "object": "response", "created_at": 1, "model": "m", "status": "completed",
                      "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []})  # fmt: skip

    def interaction(self, request: RawRequest) -> None:
        body = json.loads(request.read())
        whole = {"id": "int_1", "object": "interaction", "model": body.get("model"), "status": "completed",
                 "usage": {"total_input_tokens": 7, "total_output_tokens": 3}}  # fmt: skip
        if not body.get("stream"):
            steps = [{"type": "model_output", "content": [{"type": "text", "text": "hello"}]}]
            say(request, {**whole, "steps": steps})
            return
        events: list[dict[str, Any]] = [
            {"event_type": "interaction.created", "interaction": {**whole, "status": "in_progress", "usage": {}}},
            {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "hel"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "lo"}},
            {"event_type": "step.stop", "index": 0},
            {"event_type": "interaction.completed", "interaction": whole},
        ]
        frames = (f"event: {each['event_type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        request.answer(200, "".join(frames).encode(), ("content-type", "text/event-stream"))

    def begin_upload(self, request: RawRequest) -> None:
        body = json.loads(request.read())
        say(
            request,
            {"id": "upload_1", "object": "upload", "created_at": 1, "expires_at": 2, "status": "pending", **body},
        )

    def add_part(self, request: RawRequest) -> None:
        request.read()
        say(request, {"id": "part_1", "object": "upload.part", "created_at": 1, "upload_id": "upload_1"})

    def speak(self, request: RawRequest) -> None:
        request.read()
        request.answer(200, SOUND, ("content-type", "audio/mpeg"))

    def write_down(self, request: RawRequest) -> None:
        assert SOUND in request.read()
        say(request, {"text": "good morning"})

    def count(self, request: RawRequest) -> None:
        request.read()
        say(request, {"input_tokens": 42, "totalTokens": 42})

    def cache(self, request: RawRequest) -> None:
        request.read()
        say(request, {"name": "cachedContents/1", "model": "models/gemini-3.8-flash"})

    def moderate(self, request: RawRequest) -> None:
        request.read()
        say(request, {"id": "modr_1", "model": "omni", "results": []})

    def make_store(self, request: RawRequest) -> None:
        name = json.loads(request.read())["name"]
        counts = dict.fromkeys(("in_progress", "completed", "failed", "cancelled", "total"), 0)
        made = {"id": "vs_2", "object": "vector_store", "name": name, "created_at": 1, "last_active_at": 1}
        say(request, {**made, "usage_bytes": 0, "status": "completed", "file_counts": counts})

    def google_upload(self, request: RawRequest) -> None:
        body = request.read()
        if request.header("x-goog-upload-command") == "start":
            url = "https://generativelanguage.googleapis.com/upload/v1beta/files?upload_id=1"
            request.answer(200, b"{}", ("content-type", "application/json"), ("x-goog-upload-url", url))
            return
        self.files["google"] = body
        made = {"file": {"name": "files/google", "sizeBytes": str(len(body)), "mimeType": "text/plain"}}
        kind = ("content-type", "application/json")
        request.answer(200, json.dumps(made).encode(), kind, ("x-goog-upload-status", "final"))

    def listing(self, request: RawRequest) -> None:
        say(request, {"object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None, "files": []})

    routes: tuple[tuple[str, str, Any], ...] = (
        ("POST", r"/v1/files", upload),
        ("GET", r"/v1/files/(\w+)/content", download),
        ("DELETE", r"/v1/files/(\w+)", delete),
        ("POST", r"/v1/(?:messages/)?batches", batch),
        ("GET", r"/v1/chat/completions", listing),
        ("POST", r"/v1/embeddings", embed),
        ("POST", r"/v1(?:beta)?/models/(.+):batchEmbedContents", embed_contents),
        ("POST", r"/v1/responses/compact", compact),
        ("GET", r"/v1/responses/(\w+)", response),
        ("POST", r"/v1/responses/(\w+)/cancel", response),
        ("GET", r"/v1/responses/\w+/input_items", listing),
        ("DELETE", r"/v1/responses/(\w+)", delete),
        ("POST", r"/v1(?:beta)?/interactions", interaction),
        ("GET", r"/v1(?:beta)?/(?:files|models)", listing),
        ("POST", r"/upload/v1(?:beta)?/files", google_upload),
        ("POST", r"/v1/uploads(?:/\w+/(?:complete|cancel))?", begin_upload),
        ("POST", r"/v1/uploads/\w+/parts", add_part),
        ("POST", r"/v1/audio/speech", speak),
        ("POST", r"/v1/audio/transcriptions", write_down),
        ("POST", r"/v1/(?:messages/count_tokens|responses/input_tokens)", count),
        ("POST", r"/v1(?:beta)?/models/.+:countTokens", count),
        ("POST", r"/v1(?:beta)?/cachedContents", cache),
        ("POST", r"/v1/moderations", moderate),
        ("POST", r"/v1/vector_stores", make_store),
        ("GET", r"/v1/(?:messages/)?batches", listing),
    )


def say(request: RawRequest, value: Any, status: int = 200) -> None:
    request.answer(status, json.dumps(value).encode(), ("content-type", "application/json"))


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    with raw_upstream(FakeVendor()) as made:
        yield made


@pytest.fixture(scope="module")
def gateway(upstream: RawUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    tables = [f'[providers.{name}]\nbase_url = "{upstream.url}{path}"\nkey_env = ""\n'
              for name, path in (("openai", "/v1"), ("anthropic", ""), ("gemini", ""))]  # fmt: skip
    routes = "".join(
        f'[[routes]]\nmodel = "{model}"\nprovider = "{provider}"\nas = "{sent}"\n'
        for model, provider, sent in (("to-gemini", "gemini", "e-g"), ("to-openai", "openai", "e-o"),
                                      ("to-anthropic", "anthropic", "c"), ("mine", "openai", "e-mine"))
    )  # fmt: skip
    with served(tmp_path_factory.mktemp("raw"), "".join(tables) + routes) as made:
        yield made


@pytest.fixture
def client(gateway: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="sk-openai-client-key", base_url=f"{gateway.url}/v1", max_retries=0) as made:
        yield made


@pytest.fixture
def claude(gateway: Served) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="sk-ant-client-key", base_url=gateway.url, max_retries=0) as made:
        yield made


@pytest.fixture
def google(gateway: Served) -> Iterator[genai.Client]:
    with genai.Client(api_key="AIza-client-key", http_options=types.HttpOptions(base_url=gateway.url)) as made:
        yield made


def latest(gateway: Served) -> Any:
    return gateway.api("/api/exchanges?limit=1")["exchanges"][0]


def test_openai_files_batches_and_stored_completions(
    gateway: Served, client: openai.OpenAI, upstream: RawUpstream
) -> None:
    made = client.files.create(file=("batch.jsonl", BATCH), purpose="batch")
    assert client.files.content(made.id).read() == BATCH
    assert upstream.seen[-1].header("authorization") == "Bearer sk-openai-client-key"
    batch = client.batches.create(input_file_id=made.id, endpoint="/v1/responses", completion_window="24h")
    assert batch.input_file_id == made.id
    assert client.files.delete(made.id).deleted
    assert client.chat.completions.list().data == []
    assert (latest(gateway)["dialect"], latest(gateway)["method"]) == ("raw-http", "GET")
    with pytest.raises(openai.NotFoundError, match="no GET"):
        client.vector_stores.retrieve("vs_1")


def test_openai_responses_have_a_life_after_their_creation(client: openai.OpenAI) -> None:
    assert client.responses.retrieve("resp_1").id == "resp_1"
    assert client.responses.cancel("resp_1").status == "completed"
    assert client.responses.input_items.list("resp_1").data == []
    client.responses.delete("resp_1")
    assert client.responses.compact(model="gpt-6.1-terra", input="long talk").id == "resp_c"


def test_compaction_goes_where_its_model_goes(client: openai.OpenAI, upstream: RawUpstream) -> None:
    client.responses.compact(model="mine", input="long talk")
    with pytest.raises(openai.NotFoundError, match="has no v1/responses/compact"):
        client.responses.compact(model="to-anthropic", input="long talk")


def test_anthropic_files_and_batches(claude: anthropic.Anthropic, upstream: RawUpstream) -> None:
    made = claude.beta.files.upload(file=("a.txt", b"words", "text/plain"))
    assert claude.beta.files.download(made.id).read() == b"words"
    params: Any = {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    batch = claude.messages.batches.create(requests=[{"custom_id": "one", "params": params}])
    assert (batch.id, batch.request_counts.processing) == ("msgbatch_1", 1)
    assert upstream.seen[-1].header("authorization") == "Bearer sk-ant-client-key"


def test_google_files_and_interactions(gateway: Served, google: genai.Client, upstream: RawUpstream) -> None:
    assert list(google.files.list()) == []
    assert upstream.seen[-1].header("x-goog-api-key") == "AIza-client-key"
    made = google.interactions.create(model="gemini-3.8-flash", input="hi")
    assert made.id == "int_1"
    line = latest(gateway)
    assert (line["dialect"], line["path"]) == ("raw-http", upstream.seen[-1].target)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_an_interaction_passes_as_it_is_and_is_read_as_a_reply(
    gateway: Served, google: genai.Client, is_stream: bool
) -> None:
    asked: Any = {"model": "gemini-3.8-flash", "input": "hi"}
    if is_stream:
        kinds = [each.event_type for each in google.interactions.create(**asked, stream=True)]
        assert kinds[0] == "interaction.created"
        assert kinds.count("step.delta") == 2
    else:
        assert google.interactions.create(**asked).id == "int_1"
    line = latest(gateway)
    assert (line["state"], line["finish"], line["input_tokens"], line["output_tokens"]) == ("finished", "stop", 7, 3)
    view = gateway.api(f"/api/exchanges/{line['id']}")
    assert view["raw"]["is_read"] is True
    shown = gateway.api(f"/api/exchanges/{line['id']}/reply")["reply"]
    assert shown["parts"] == [{"type": "text", "text": "hello"}]
    assert (shown["model"], shown["finish"]) == ("gemini-3.8-flash", "stop")


def test_openai_uploads_sound_counts_and_stores(gateway: Served, client: openai.OpenAI) -> None:
    begun = client.uploads.create(bytes=4, filename="a.bin", mime_type="text/plain", purpose="batch")
    part = client.uploads.parts.create(begun.id, data=b"data")
    assert (part.upload_id, latest(gateway)["dialect"]) == (begun.id, "raw-http")
    assert client.uploads.complete(begun.id, part_ids=[part.id]).id == begun.id
    assert client.uploads.cancel(begun.id, extra_body={}).id == begun.id
    assert client.audio.speech.create(model="tts-1", voice="alloy", input="hi").read() == SOUND
    spoken = client.audio.transcriptions.create(model="whisper-1", file=("a.mp3", SOUND, "audio/mpeg"))
    assert spoken.text == "good morning"
    assert client.responses.input_tokens.count(model="gpt-5", input="hi").input_tokens == 42
    assert client.moderations.create(input="hi").id == "modr_1"
    assert client.vector_stores.create(name="mine").name == "mine"
    assert client.batches.list().data == []
    assert client.files.list().data == []
    assert client.models.list().data


def test_anthropic_counts_lists_and_models(claude: anthropic.Anthropic) -> None:
    asked: Any = [{"role": "user", "content": "hi"}]
    assert claude.messages.count_tokens(model="claude-sonnet-5-5", messages=asked).input_tokens == 42
    assert claude.messages.batches.list().data == []
    assert claude.beta.files.list().data == []
    assert claude.models.list().data


def test_google_counts_caches_and_models(google: genai.Client) -> None:
    assert google.models.count_tokens(model="gemini-3.8-flash", contents="hi").total_tokens == 42
    made = google.caches.create(model="gemini-3.8-flash", config=types.CreateCachedContentConfig(ttl="60s"))
    assert made.name == "cachedContents/1"
    assert next(iter(google.models.list())).name


def test_google_uploads_a_file(gateway: Served, google: genai.Client, upstream: RawUpstream) -> None:
    words = b"a few words " * 1000
    # The SDK sends the bytes to the address that Google names, unless the call itself has another.
    options = types.HttpOptions(base_url=gateway.url)
    config = types.UploadFileConfig(mime_type="text/plain", http_options=options)
    made = google.files.upload(file=io.BytesIO(words), config=config)
    assert (made.name, made.size_bytes) == ("files/google", len(words))
    assert [each.target for each in upstream.seen[-2:]] == ["/upload/v1/files", "/upload/v1beta/files?upload_id=1"]


@pytest.mark.parametrize("form", ["float", "base64"])
@pytest.mark.parametrize(("model", "first"), [("text-embedding-3-small", 0.5), ("mine", 0.5), ("to-gemini", 0.25)])
def test_openai_embeddings_from_any_provider(
    gateway: Served, client: openai.OpenAI, form: Any, model: str, first: float
) -> None:
    made = client.embeddings.create(model=model, input=["a", "b"], encoding_format=form, user="me")
    vectors = [each.embedding for each in made.data]
    if form == "base64" and model != "to-gemini":
        return  # the vendor itself would have written it
    if form == "float":
        assert vectors == [[first, 0.0], [first, 1.0]]
    line = latest(gateway)
    raw = client.embeddings.with_raw_response.create(model="to-gemini", input="a")
    assert raw.headers["x-request-id"] == raw.headers["x-sightline-exchange"]
    assert (line["dialect"], line["state"]) == ("raw-http", "finished")
    assert line.get("losses", 0) == (1 if model == "to-gemini" else 0)


@pytest.mark.parametrize(("model", "first"), [("gemini-embedding-001", 0.25), ("to-openai", 0.5)])
def test_google_embeddings_from_any_provider(google: genai.Client, model: str, first: float) -> None:
    made = google.models.embed_content(model=model, contents=["a", "b"])
    assert made.embeddings is not None
    assert [each.values for each in made.embeddings] == [[first, 0.0], [first, 1.0]]


def test_embeddings_of_a_provider_without_them_are_refused(upstream: RawUpstream, client: openai.OpenAI) -> None:
    before = len(upstream.seen)
    for model in ("to-anthropic", "local", "local/smollm2-135m-instruct"):  # what is for this machine never leaves it
        with pytest.raises(openai.BadRequestError, match="has no embeddings"):
            client.embeddings.create(model=model, input="a")
    assert len(upstream.seen) == before
    with pytest.raises(openai.BadRequestError, match="neither a text nor a list of texts"):
        client.embeddings.create(model="to-gemini", input=[1, 2, 3])
    strict = {"x-sightline-strict": "1"}
    with pytest.raises(openai.BadRequestError, match="not carried"):
        client.embeddings.create(model="to-gemini", input="a", extra_body={"new": 1}, extra_headers=strict)
