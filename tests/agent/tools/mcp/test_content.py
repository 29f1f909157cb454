import base64
from typing import Any

import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from sightline.agent.core.tool import ToolOutcome
from sightline.agent.tools.mcp.listing import outcome
from sightline.model.parts import Audio, Document, Image, Inline, Text
from tests.agent.tools.mcp.sdk_server import PIXEL


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def answered(*content: ContentBlock, structured: Any = None, is_error: bool = False) -> ToolOutcome:
    result = CallToolResult(content=list(content), structured_content=structured, is_error=is_error)
    return outcome(result, frozenset({"sk-12345678"}))


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (TextContent(text="words"), Text("words")),
        (TextContent(text="it is sk-12345678!"), Text("it is ***!")),
        (ImageContent(data=coded(PIXEL), mime_type="image/png"), Image(Inline("image/png", coded(PIXEL)))),
        (
            ImageContent(data=coded(b"\xff\xd8\xff more"), mime_type="image/png"),
            Image(Inline("image/jpeg", coded(b"\xff\xd8\xff more"))),
        ),
        (
            ImageContent(data=coded(b"RIFF0000WEBP"), mime_type="x"),
            Image(Inline("image/webp", coded(b"RIFF0000WEBP"))),
        ),
        (
            AudioContent(data=coded(b"RIFF0000WAVE"), mime_type="audio/wav"),
            Audio(Inline("audio/wav", coded(b"RIFF0000WAVE"))),
        ),
        (ImageContent(data="not base64", mime_type="image/png"), Text("[image/png left out: it is not base64]")),
        (
            ImageContent(data=coded(b"<svg>"), mime_type="image/svg+xml"),
            Text("[image/svg+xml of 5 bytes left out: no model can be shown it]"),
        ),
        (EmbeddedResource(resource=TextResourceContents(uri="file:///a", text="inside")), Text("[file:///a]\ninside")),
        (
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a.pdf", blob=coded(b"%PDF-1.7"))),
            Document(Inline("application/pdf", coded(b"%PDF-1.7")), title="file:///a.pdf"),
        ),
        (
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a", blob="AAEC")),
            Text("[a file of 3 bytes at file:///a left out: no model can be shown it]"),
        ),
        (ResourceLink(name="a", uri="file:///a"), Text("[resource a: file:///a]")),
        (
            ResourceLink(name="a", title="A", uri="file:///a", mime_type="text/plain", size=0, description="old"),
            Text("[resource A: file:///a, text/plain, 0 bytes, old]"),
        ),
    ],
)
def test_every_kind_of_content_has_its_part(block: ContentBlock, part: object) -> None:
    assert answered(block) == ToolOutcome((part,))


def test_an_error_is_an_error() -> None:
    assert answered(TextContent(text="no"), is_error=True) == ToolOutcome((Text("no"),), is_error=True)


def test_structure_is_kept_and_what_repeats_it_is_not() -> None:
    words = TextContent(text='{\n  "n": 1,\n  "m": [2]\n}')
    assert answered(words, structured={"m": [2], "n": 1}) == ToolOutcome((), structured={"m": [2], "n": 1})
    assert answered(TextContent(text="n is 1"), structured={"n": 1}) == ToolOutcome(
        (Text("n is 1"),), structured={"n": 1}
    )


def test_a_wrapping_around_words_is_taken_off() -> None:
    assert answered(TextContent(text="42"), structured={"result": 42}) == ToolOutcome((Text("42"),))
    assert answered(TextContent(text="so"), structured={"result": "so"}) == ToolOutcome((Text("so"),))
    both = answered(TextContent(text="1"), TextContent(text="2"), structured={"result": [1, 2]})
    assert both == ToolOutcome((), structured={"result": [1, 2]})


def test_structured_content_other_than_an_object_becomes_text() -> None:
    assert answered(structured=[1, "a"]) == ToolOutcome((Text('[1,"a"]'),))
    assert answered(TextContent(text="[1]"), structured=[1]) == ToolOutcome((Text("[1]"),))


def test_no_secret_is_in_a_structure() -> None:
    found = answered(structured={"k": ["sk-12345678", {"x sk-12345678": 1}], "n": None})
    assert found.structured == {"k": ["***", {"x ***": 1}], "n": None}
