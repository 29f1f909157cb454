import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.catalog.catalog import Catalog
from sightline.catalog.choose import choose
from sightline.catalog.compose import Prompt
from sightline.catalog.facts import Facts, Model
from sightline.catalog.provider import Provider
from sightline.errors import Code, Fault
from sightline.exchange.client_request import ClientRequest
from sightline.exchange.engine import count, path_of, question
from sightline.exchange.outbound import Prepared, prepare
from sightline.exchange.relay_messages import (
    EndFrame,
    FactFrame,
    Frame,
    FrameReader,
    HeadFrame,
    PieceFrame,
    RelayCall,
    WaitCall,
    read_fact_entry,
    read_fault,
    read_message,
    write_call,
    write_fact_entry,
    write_fault,
    write_frame,
)
from sightline.model.exchange import Dropped, Released
from sightline.model.parts import Text
from sightline.model.request import Message
from sightline.store.entries import FactEntry
from sightline.tokens.ledger import Wait

ASKED = ClientRequest(
    "anthropic", b"\x00\xff{}", (("a", "b"),), "/v1/messages", provider="acme", is_own=True, retries=0
)
FRAMES: list[Frame] = [
    FactFrame(write_fact_entry(FactEntry("x", 1, 2.5, Released("abc"))), b"\x00body", "tool_calls"),
    HeadFrame("x", 200, ((b"content-type", b"text/\xfft"),)),
    PieceFrame(b"\x00\x01"),
    PieceFrame(b"", write_fault(Fault(Code.NETWORK, "gone"))),
    EndFrame(),
]


@given(st.lists(st.integers(0, 400)))
def test_frames_come_out_of_any_pieces(cuts: list[int]) -> None:
    data = b"".join(map(write_frame, FRAMES))
    places = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    reader = FrameReader()
    came = [frame for a, b in pairwise(places) for frame in reader.feed(data[a:b])]
    assert came == FRAMES


def test_a_call_keeps_every_byte_and_shows_no_key() -> None:
    call = RelayCall(asked=ASKED, provider=Provider(key_env="K"), variables={"K": "the-secret"})
    assert "the-secret" not in repr(call)
    for message in (call, WaitCall("acme", "m", 7, Facts(rpm=3)), Wait(float("inf"), "too_large", "tpm", 3.0)):
        assert read_message(write_call(message), type(message)) == message


def test_a_fault_keeps_what_a_command_tells() -> None:
    fault = Fault(Code.RATE_LIMITED, "slow", hint="Wait.", pointer="/a", status=429, retry_after=2.5)
    fault.add_note("note: after 3 attempts")
    again = read_fault(write_fault(fault))
    assert (again.code, again.message, again.hint, again.pointer) == (Code.RATE_LIMITED, "slow", "Wait.", "/a")
    assert (again.status, again.retry_after, again.__notes__) == (429, 2.5, ["note: after 3 attempts"])


def test_half_a_character_passes() -> None:
    noted = FactEntry("x", 0, 1.0, Dropped("\ud83d"))
    assert read_fact_entry(write_fact_entry(noted)) == noted


@pytest.mark.parametrize(
    "read",
    [
        lambda: read_message(b"\xc0", RelayCall),
        lambda: read_fact_entry(b'{"x":1}'),
        lambda: read_fault(b'{"x":1}'),
        lambda: list(FrameReader().feed(b"\x00\x00\x00\x01\xc0")),
    ],
)
def test_message_of_another_version_is_reported(read: Callable[[], object]) -> None:
    with pytest.raises(Fault, match="do not understand each other"):
        read()


def ready(*, stream: bool = True, **provider: object) -> Prepared:
    acme = Provider(**{"base_url": "http://127.0.0.1:1", "key_env": "ACME_KEY", **provider})  # type: ignore[arg-type]
    catalog = Catalog(providers={"acme": acme}, models={"m": Model(providers=("acme",))})
    prompt = Prompt(messages=(Message("user", (Text("hi"),)),), stream=stream)
    return prepare(prompt, choose(catalog, "m", has_key=lambda _: True))


def test_a_question_is_the_prepared_body_for_the_chosen_provider() -> None:
    made = ready()
    asked = question(made, session="chat", received=3.0)
    assert asked.body is made.body
    assert (asked.dialect, asked.provider, asked.model, asked.is_stream) == ("openai-chat", "acme", "m", True)
    assert (asked.session, asked.received, asked.counts) == ("chat", 3.0, False)
    assert (asked.path, asked.query) == ("/v1/chat/completions", "")


def test_its_headers_are_a_clients_without_any_credential() -> None:
    made = ready(dialect="anthropic", headers={"Accept": "*/*"}, env_headers={"x-trace": "TRACE"})
    asked = question(made, session="ask", received=0.0)
    assert asked.headers_by_name() == {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "user-agent": "sightline",
    }


@pytest.mark.parametrize(
    ("spoken", "stream", "path", "query"),
    [
        ("openai-responses", True, "/v1/responses", ""),
        ("anthropic", False, "/v1/messages", ""),
        ("gemini", False, "/v1beta/models/a%20b:generateContent", ""),
        ("gemini", True, "/v1beta/models/a%20b:streamGenerateContent", "alt=sse"),
    ],
)
def test_paths_are_those_that_clients_use(spoken: str, stream: bool, path: str, query: str) -> None:
    assert path_of(spoken, "a b", stream=stream) == (path, query)


def test_a_model_that_no_path_names_may_be_called_anything() -> None:
    assert path_of("openai-chat", "../x", stream=True) == ("/v1/chat/completions", "")


def test_a_count_asks_for_nothing_else() -> None:
    asked = count(ready(dialect="gemini"), received=1.0)
    assert (asked.counts, asked.is_stream, asked.provider) == (True, False, "acme")
    assert asked.path == "/v1beta/models/m:countTokens"
    assert json.loads(asked.body)["generateContentRequest"]["model"] == "models/m"
