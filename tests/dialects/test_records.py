"""What the records of the dialects say beyond translation: how edits are written, what clients expect, which paths are
theirs. Where these facts are used, the rooms that use them test them."""

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import ListedModel
from sightline.dialects.endpoint import (
    PathMatch,
    dialect_by_client,
    dialect_by_prefix,
    dialect_by_version,
    dialect_of_model_paths,
    match_path,
    provider_dialects,
)
from sightline.dialects.registry import NAMES, dialect
from sightline.errors import Code, Fault
from sightline.model.json import Json
from sightline.model.parts import Opaque, Text, Thinking, ToolCall
from sightline.model.request import Message

LARGE = ListedModel("large", "acme", Facts(title="Large", context_window=1000, max_output=100))
PLAIN = ListedModel("plain", "acme", Facts())
CODEX = {"user-agent": "codex_cli_rs/0.1"}
EVENT = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'


@pytest.mark.parametrize(
    ("name", "role", "part"),
    [
        ("openai-chat", "user", {"type": "text", "text": "x"}),
        ("anthropic", "user", {"type": "text", "text": "x"}),
        ("gemini", "user", {"text": "x"}),
        ("raw", "user", {"type": 1, "text": "x"}),
        ("openai-responses", "user", {"type": "input_text", "text": "x"}),
        ("openai-responses", "assistant", {"type": "output_text", "text": "x", "annotations": []}),
    ],
)
def test_a_text_is_a_part(name: str, role: str, part: Json) -> None:
    assert dialect(name).editing.text_part(role, "x") == part


def test_only_the_responses_api_spells_a_part_by_its_role() -> None:
    said: Json = {"type": "output_text", "text": "x", "annotations": [], "logprobs": [], "own": 1}
    asked: Json = {"type": "input_text", "text": "x"}
    respell = dialect("openai-responses").editing.respell_part
    assert respell(said, "user") == {"type": "input_text", "text": "x", "own": 1}
    assert respell(asked, "assistant") == {"type": "output_text", "text": "x", "annotations": []}
    assert respell(asked, "user") is asked
    assert respell({"type": "input_image"}, "assistant") == {"type": "input_image"}
    assert respell("x", "assistant") == "x"
    for name in NAMES:
        if name != "openai-responses":
            assert dialect(name).editing.respell_part(said, "user") is said


def test_messages_by_which_others_are_read() -> None:
    plain = Message("user", (Text("x"),))
    mirrored = Message("assistant", (Opaque("gemini", {}, mirrored=True),))
    shell = Message("assistant", (ToolCall("c", "shell", "{}", "local_shell"),))
    thought = Message("assistant", (Thinking("x"),))
    linked = {name: dialect(name).editing.is_linked for name in NAMES}
    assert not any(is_linked(plain) for is_linked in linked.values())
    assert all(is_linked(mirrored) for is_linked in linked.values())
    assert [name for name, is_linked in linked.items() if is_linked(shell)] == ["openai-responses"]
    assert [name for name, is_linked in linked.items() if is_linked(thought)] == ["gemini"]
    assert linked["gemini"](Message("user", ()))


@pytest.mark.parametrize(
    ("name", "headers", "frame"),
    [
        ("openai-chat", CODEX, b": held\n\n"),
        ("raw", {}, b": held\n\n"),
        ("openai-responses", {}, b": held\n\n"),
        ("openai-responses", CODEX, EVENT),
        ("openai-responses", {"originator": "Codex Desktop"}, EVENT),
        ("anthropic", {}, b'event: ping\ndata: {"type": "ping"}\n\n'),
        ("gemini", {}, b"\n\n"),
    ],
)
def test_what_keeps_a_stream_open(name: str, headers: dict[str, str], frame: bytes) -> None:
    assert dialect(name).clients.keep_alive(headers) == frame


def test_only_gemini_streams_an_array_unless_events_are_requested() -> None:
    assert [name for name in NAMES if dialect(name).clients.streams_array("")] == ["gemini"]
    for query in ("alt=sse", "key=1&$alt=sse", "%24alt=sse&x=1"):
        assert not dialect("gemini").clients.streams_array(query)


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "raw"])
def test_a_list_of_models_as_openai_has_it(name: str) -> None:
    entry = {"id": "large", "object": "model", "created": 0, "owned_by": "acme"}
    assert dialect(name).clients.show_model(LARGE) == entry
    assert dialect(name).clients.list_models([LARGE]) == {"object": "list", "data": [entry]}


def test_a_list_of_models_as_anthropic_has_it() -> None:
    clients = dialect("anthropic").clients
    entry = {"type": "model", "id": "plain", "display_name": "plain", "created_at": "1970-01-01T00:00:00Z"}
    assert clients.show_model(PLAIN) == entry
    assert clients.show_model(LARGE)["max_input_tokens"] == 1000
    assert clients.list_models([PLAIN]) == {
        "data": [entry], "has_more": False, "first_id": "plain", "last_id": "plain"
    }  # fmt: skip
    assert clients.list_models([]) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_a_list_of_models_as_google_has_it() -> None:
    clients = dialect("gemini").clients
    assert clients.list_models([LARGE]) == {"models": [clients.show_model(LARGE)]}
    assert clients.show_model(LARGE) == {
        "name": "models/large",
        "baseModelId": "large",
        "version": "001",
        "displayName": "Large",
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        "inputTokenLimit": 1000,
        "outputTokenLimit": 100,
    }


@pytest.mark.parametrize("name", NAMES)
def test_state_of_another_provider_is_refused(name: str) -> None:
    fault = dialect(name).clients.state_fault("conversation")
    assert fault.code == Code.INVALID_REQUEST
    is_thread = name == "anthropic"
    assert ("threads" in fault.message) == is_thread
    assert fault.pointer == (None if is_thread else "/conversation")


def test_frames_are_recognised() -> None:
    frames: dict[str, dict[str, Json]] = {
        "openai-chat": {"choices": []},
        "openai-responses": {"type": "response.created"},
        "anthropic": {"type": "message_start"},
        "gemini": {"candidates": []},
        "raw": {"index": 0, "delta": {}},
    }
    for name, frame in frames.items():
        assert [each for each in NAMES if dialect(each).owns_frame(frame)] == [name]
    assert not any(dialect(each).vendor_problems({}) for each in ("gemini", "raw"))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("chat/completions", PathMatch("openai-chat")),
        ("chat/completions/input_tokens", None),
        ("responses", PathMatch("openai-responses")),
        ("responses/input_tokens", PathMatch("openai-responses", counts=True)),
        ("messages", PathMatch("anthropic")),
        ("messages/count_tokens", PathMatch("anthropic", counts=True)),
        ("models/m:generateContent", PathMatch("gemini", "m")),
        ("models/a/b:streamGenerateContent", PathMatch("gemini", "a/b", is_stream=True)),
        ("models/m:countTokens", PathMatch("gemini", "m", counts=True)),
        ("models/:generateContent", None),
        ("models/m", None),
        ("tuned/m:generateContent", None),
        ("", None),
    ],
)
def test_paths(path: str, found: PathMatch | None) -> None:
    assert match_path(path.split("/")) == found


def test_what_else_shows_a_dialect() -> None:
    assert [each.name for each in provider_dialects()] == list(NAMES[:-1])
    assert dialect_by_prefix(["messages", "batches"], "v1") == "anthropic"
    assert dialect_by_prefix(["files"], "v1beta") == "gemini"
    assert dialect_by_prefix([], "v1") == ""
    assert dialect_by_version("v1alpha2") == "gemini"
    assert dialect_by_client({"x-goog-api-client", "anthropic-version"}, "") == "gemini"
    assert dialect_by_client({"anthropic-version"}, "=1") == "anthropic"
    assert dialect_by_client(set(), "alt=sse&key=1") == "gemini"
    assert dialect_by_client(set(), "key") == "openai-chat"
    assert dialect_of_model_paths() == "gemini"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(Fault, match="unknown dialect 'cohere'") as caught:
        dialect("cohere")
    assert caught.value.code == Code.USAGE
    assert "gemini" in caught.value.hint
