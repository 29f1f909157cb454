"""A request is sent again: as it was, edited, or to several models, and the answers stand side by side."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.page_stage import PageStage, chat, user

CONFIG = """key_env = "PAGE_KEY"
[[routes]]
model = "m*"
provider = "acme"
"""


@pytest.fixture(scope="module", autouse=True)
def _key() -> Iterator[None]:
    """A client's own credential is not on record, so that the provider needs one to be asked again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAGE_KEY", "none")
        yield


def test_two_models_answer_side_by_side(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("Who are you?")))
    with stage.visit() as page:
        page.get_by_role("row", name="Who are you?").click()
        page.get_by_role("button", name="Replay…").click()
        for model in ("m-small", "m-large"):
            page.get_by_role("combobox", name="Model").fill(model)
            page.keyboard.press("Enter")
        page.get_by_role("button", name="Send to 2 models").click()
        for model in ("m", "m-small", "m-large"):
            column = page.get_by_role("region", name=model, exact=True)
            expect(column).to_contain_text("finished")
            expect(column).to_contain_text("Hello there.")
            expect(column).to_contain_text("11 in, 7 out")
        stage.keep(page, "replay-side-by-side")
        page.get_by_role("region", name="m-large", exact=True).get_by_role("link", name="open").click()
        expect(page.get_by_role("tabpanel", name="Reply")).to_contain_text("Hello there.")
        expect(page.get_by_role("link", name="Replay of")).to_be_visible()
    assert sorted(json.loads(body)["model"] for body in stage.desk.sent[-2:]) == ["m-large", "m-small"]


def test_an_edited_body_is_sent_exactly(stage: PageStage) -> None:
    stage.person.put("/api/interception", {"mode": "off"})
    stage.free(chat(user("How old are you?")))
    edited = '{"model": "m",  "messages": [{"role": "user", "content": "How young are you?"}]}'
    with stage.visit() as page:
        page.get_by_role("row", name="How old are you?").click()
        expect(page.get_by_role("button", name="Replay…")).to_be_visible()
        page.keyboard.press("r")
        page.get_by_role("button", name="Edit the body first").click()
        expect(page.get_by_role("textbox", name="Body to replay")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(edited)
        page.get_by_role("button", name="Send the edited body").click()
        expect(page.get_by_role("region", name="m (edited)")).to_contain_text("finished")
    assert stage.desk.sent[-1] == edited.encode()
