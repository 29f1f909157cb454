"""The embedded model really overflows: the chat leaves out what must be, and says so."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import NARROW
from tests.chat_page import chatting
from tests.gateway_server import Served, served
from tests.local_model import KEY, needs_model, serving
from tests.person import Person

pytestmark = needs_model

WINDOW, TOLD = 512, 2048
QUESTION = "Tell me one more time about the lighthouse, the keeper and the sea, in as few words as you can."
ANSWER = "The keeper lit the lamp and the sea went by. The keeper lit the lamp and the sea went by."
PAIRS = 12


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The model has a smaller window than the configuration says."""
    folder = tmp_path_factory.mktemp("trimming")
    with pytest.MonkeyPatch.context() as patch, serving(WINDOW) as model:
        patch.setenv("SIGHTLINE_LOCAL_KEY", KEY)
        config = f'[local]\nurl = "{model.url}"\ncontext_window = {TOLD}\n[chat]\nassistant_response_allowance = 64\n'
        with served(folder, config) as found:
            text = "# Sea\n\n" + f"## User\n\n{QUESTION}\n\n## Assistant\n\n{ANSWER}\n\n" * PAIRS
            status, told = found.post("/api/chat/import?name=sea.md", text.encode())
            assert (status, told["pairs"]) == (200, PAIRS)
            Person(found).put("/api/chat/topics", {"parameters": {"max_tokens": 12}})
            yield found


def test_context_overflow_is_trimmed_and_reported(server: Served, tmp_path: Path) -> None:
    with chatting(server) as chat:
        expect(chat.counter).to_have_text(f"{PAIRS} / {PAIRS}")
        pair = chat.ask("And now?")
        expect(chat.counter).to_have_text(re.compile(rf"^\[{PAIRS}-\d+\]/{PAIRS + 1}$"))
        expect(pair.locator(".pair-note")).to_contain_text("the provider found the request too large")
        chat.counter.hover()
        breakdown = chat.page.get_by_role("tooltip")
        expect(breakdown).to_contain_text("Last send:")
        for label in ("Pairs to send", "Trimmed", "Sent", "Visible pairs", "Question", "Your text", "Model limit"):
            expect(breakdown.get_by_role("rowheader", name=label, exact=True)).to_be_visible()
        chat.keep(tmp_path, "chat-trimmed")
        chat.page.mouse.move(400, 400)
        chat.press("Escape", "Shift+H")
        hud = chat.page.get_by_role("complementary", name="HUD")
        expect(hud.get_by_role("region", name="TRIMMING")).to_contain_text("success")
        chat.keep(tmp_path, "chat-trimmed-hud")
        chat.press("Shift+H")
        chat.page.reload()
        expect(chat.counter).to_have_text(re.compile(rf"^\[{PAIRS}-\d+\]/{PAIRS + 1}$"))


def test_on_a_phone_the_breakdown_fits(server: Served, tmp_path: Path) -> None:
    with chatting(server, size=NARROW, dark=True) as chat:
        chat.ask("And then?")
        chat.counter.click()
        expect(chat.page.get_by_role("tooltip")).to_contain_text("Trimmed")
        chat.fits()
        chat.keep(tmp_path, "chat-trimmed-narrow-dark")
