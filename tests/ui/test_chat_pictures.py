"""Pictures in answers: each answer of a pair shows its own, also those that a later one took the place of."""

from pathlib import Path

from playwright.sync_api import expect

from sightline.chat.core.history import ChatHistory
from sightline.chat.core.imports.formats import to_json
from sightline.chat.core.pair import ChatAnswer, MessagePair
from sightline.model.parts import Image, Inline, Text, ToolCall, ToolResult
from sightline.model.request import Message
from tests.chat_page import chat_stage, chatting
from tests.picture_files import gradient


def drawn(*sides: int) -> ChatAnswer:
    """An answer of a tool that draws."""
    pictures = tuple(Image(Inline("image/png", gradient(each, each))) for each in sides)
    call, result = ToolCall("c1", "draw", "{}"), ToolResult("c1", pictures, "draw")
    said = Message("assistant", (Text(f"{len(sides)} drawn."),))
    return ChatAnswer(messages=(Message("assistant", (call,)), Message("tool", (result,)), said), finish="stop")


def test_an_earlier_answer_shows_its_own_pictures(tmp_path: Path) -> None:
    pair = MessagePair(
        id="p", user_text="Draw.", model="acme/large", answer=drawn(3), earlier=(drawn(7, 9),), state="complete", at=1.0
    )
    with chat_stage(tmp_path) as desk:
        desk.raw("POST", "import?name=a.json", to_json(ChatHistory(), [pair], now=1.0))
        with chatting(desk.server) as chat:
            shown = chat.pair("Draw.")
            shown.locator("summary").click()
            expect(shown.get_by_role("img", name="Picture in the answer")).to_have_js_property("naturalWidth", 3)
            shown.get_by_role("button", name="1 earlier answer").click()
            earlier = chat.dialog("Earlier answers")
            earlier.locator("summary").click()
            pictures = earlier.get_by_role("img", name="Picture in the answer")
            expect(pictures.first).to_have_js_property("naturalWidth", 7)
            expect(pictures.last).to_have_js_property("naturalWidth", 9)
            chat.keep(tmp_path, "chat-earlier-pictures")
