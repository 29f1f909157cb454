import pytest

from sightline.catalog.clients import BASE_URLS, CREDENTIALS, DEMANDED, KNOWN_CLIENTS, KnownClient
from sightline.catalog.facts import Facts
from sightline.catalog.fitting import HOSTED_TOOLS, HostedTool, make_native_tool, native_tool_kind, refusals, refuse
from sightline.errors import Code, Fault
from sightline.model.parts import Audio, Document, FileId, Image, Inline, Link, Part, PlainText, Text, ToolResult
from sightline.model.request import (
    FunctionTool,
    JsonFormat,
    Message,
    OpaqueTool,
    Options,
    Reasoning,
    Request,
    SchemaFormat,
)

PICTURE = Image(Inline("image/png", "AAAA"))
PAPER = Document(Inline("application/pdf", "JVBERi0="), "a.pdf")
SOUND = Audio(Inline("audio/wav", "UklGRg=="))
EVERYTHING = Request(
    messages=(Message("user", (Text("See."), PICTURE, PAPER, SOUND)),),
    tools=(FunctionTool("add"),),
    options=Options(max_tokens=100, format=SchemaFormat({}), reasoning=Reasoning(effort="high")),
)
NOTHING = Facts(input=("text",), tools=False, reasoning=False, structured_output=False, max_output=99)


def pointers(request: Request, facts: Facts) -> list[str]:
    return [refusal.pointer for refusal in refusals(request, facts)]


def asking(**options: object) -> Request:
    return Request(options=Options(**options))  # type: ignore[arg-type]


def saying(*parts: Part) -> Request:
    return Request(messages=(Message("user", parts),))


READ = Request(
    messages=(Message("user", (Image(Link("https://e.org/a.png"), at="/input/0/content/0"),)),),
    options=Options(
        max_tokens=100,
        format=SchemaFormat({}, at="/text/format"),
        reasoning=Reasoning(summary="auto", at="/reasoning"),
        places={"max_tokens": "/max_output_tokens"},
    ),
)
PARTS = ["/messages/0/parts/1", "/messages/0/parts/2", "/messages/0/parts/3"]
REASONING = ["/options/reasoning"]


@pytest.mark.parametrize(
    ("request_", "places"),
    [
        (EVERYTHING, [*PARTS, "/tools", "/options/format", *REASONING, "/options/max_tokens"]),
        # What was read is named by its place in the document.
        (READ, ["/input/0/content/0", "/text/format", "/reasoning", "/max_output_tokens"]),
        # A picture is seen in a tool's result, and a PDF behind a link; another document may be text.
        (saying(ToolResult("c", (Text("here"), PICTURE))), ["/messages/0/parts/0/parts/1"]),
        (saying(Document(Link("https://e.org/a", "application/pdf"))), ["/messages/0/parts/0"]),
        (saying(Document(PlainText("words")), Document(FileId("f-1")), Document(Inline("text/plain", "d29yZHM="))), []),
        # Any option of reasoning asks for it; none is what such a model does anyway.
        (asking(reasoning=Reasoning(mode="on")), REASONING),
        (asking(reasoning=Reasoning(mode="adaptive")), REASONING),
        (asking(reasoning=Reasoning(budget=5)), REASONING),
        (asking(reasoning=Reasoning(summary="auto")), REASONING),
        (asking(reasoning=Reasoning(mode="off")), []),
        (asking(reasoning=Reasoning(effort="none", summary="none", budget=0)), []),
        (asking(format=JsonFormat(), max_tokens=99), []),
    ],
)
def test_everything_that_a_model_cannot_do_is_named_with_its_place(request_: Request, places: list[str]) -> None:
    assert pointers(request_, NOTHING) == places


def test_what_a_model_can_do_or_may_be_able_to_is_allowed() -> None:
    media = ("text", "image", "pdf", "audio")
    able = Facts(input=media, tools=True, reasoning=True, structured_output=True, max_output=100)
    for facts in (able, Facts()):
        assert pointers(EVERYTHING, facts) == []
        refuse(EVERYTHING, facts, "m")


def test_one_fault_says_it_all() -> None:
    with pytest.raises(Fault) as caught:
        refuse(EVERYTHING, NOTHING, "tiny")
    fault = caught.value
    assert fault.code is Code.INVALID_REQUEST
    assert fault.pointer == "/messages/0/parts/1"
    assert fault.message == (
        "tiny cannot do what is asked: it cannot take an image; it cannot take a PDF; it cannot take audio; "
        "it cannot call tools; it cannot keep to an output schema; it does not reason; it cannot write 100 tokens"
    )
    assert "99 tokens at most" in fault.hint


def test_two_pictures_are_refused_in_one_sentence() -> None:
    with pytest.raises(Fault, match=r"^tiny cannot do what is asked: it cannot take an image$"):
        refuse(Request(messages=(Message("user", (PICTURE, PICTURE)),)), NOTHING, "tiny")


@pytest.mark.parametrize("kind", list(HOSTED_TOOLS))
def test_a_tool_is_recognised_as_we_made_it_and_in_its_dialects_form(kind: HostedTool) -> None:
    assert native_tool_kind(make_native_tool(kind), "acme", {}) == kind
    assert native_tool_kind(OpaqueTool("acme", "its form"), "acme", {kind: "its form"}) == kind  # type: ignore[dict-item]


def test_other_tools_are_none_of_these() -> None:
    assert native_tool_kind(OpaqueTool("openai-responses", {"type": "web_search", "filters": {}}), "gemini", {}) is None
    assert native_tool_kind(OpaqueTool("gemini", {"type": "web_search"}), "gemini", {}) is None
    assert native_tool_kind(FunctionTool("web_search"), "gemini", {}) is None


def test_a_client_is_pointed_at_an_address_by_the_variables_that_it_reads() -> None:
    both = KnownClient("Both", variables=("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"))
    assert both.environment("http://127.0.0.1:7700") == {
        "OPENAI_BASE_URL": "http://127.0.0.1:7700/v1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:7700",
    }
    assert KnownClient("None").environment("http://127.0.0.1:7700") == {}


def test_known_clients_use_known_variables_or_a_launchable_program() -> None:
    known = {name for name, _, _ in BASE_URLS}
    assert all(set(client.variables) <= known for client in KNOWN_CLIENTS)
    assert all(client.variables or client.program for client in KNOWN_CLIENTS)
    assert len({client.title for client in KNOWN_CLIENTS}) == len(KNOWN_CLIENTS)


def test_what_a_client_demands_is_one_of_its_credentials() -> None:
    assert all(set(names) <= set(CREDENTIALS[provider]) for provider, names in DEMANDED.items())
