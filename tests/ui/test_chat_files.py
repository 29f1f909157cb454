"""Files go along with a question: pasted, dropped and picked."""

import base64
import json
from pathlib import Path

from playwright.sync_api import expect

from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import ChatPage, chatting

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
BRING = """([kind, files]) => {
  const bag = new DataTransfer();
  for (const [name, type, data] of files) {
    bag.items.add(new File([Uint8Array.from(atob(data), (each) => each.charCodeAt(0))], name, { type }));
  }
  const field = document.getElementById("chat-input");
  const options = { bubbles: true, cancelable: true };
  if (kind === "paste") field.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: bag }));
  else for (const each of ["dragover", "drop"]) {
    field.dispatchEvent(new DragEvent(each, { ...options, dataTransfer: bag }));
  }
}"""


def bring(chat: ChatPage, kind: str, *files: tuple[str, str, bytes]) -> None:
    """As a browser does it."""
    given = [[name, media_type, base64.b64encode(data).decode()] for name, media_type, data in files]
    chat.page.evaluate(BRING, [kind, given])


def test_pasted_dropped_and_picked_they_leave_with_the_question(talk: ChatDesk, tmp_path: Path) -> None:
    with chatting(talk.server) as chat:
        tray = chat.page.get_by_role("region", name="Your question").get_by_role("list", name="Attachments")
        bring(chat, "paste", ("", "image/png", PNG))
        expect(tray.get_by_role("listitem")).to_have_count(1)
        bring(
            chat, "drop", ("notes.md", "text/markdown", b"# Remember the milk"), ("more.txt", "text/plain", b"and tea")
        )
        expect(tray.get_by_role("listitem")).to_have_count(3)
        with chat.page.expect_file_chooser() as chooser:
            # The page is told to hand its chooser over by another way than keys come: that must be there first.
            chat.page.evaluate("null")
            chat.press("Alt+a")
        (tmp_path / "picked.csv").write_text("a,b\n1,2\n")
        chooser.value.set_files(tmp_path / "picked.csv")
        expect(tray.get_by_role("listitem")).to_have_count(4)
        tray.get_by_role("button", name="Remove more.txt").click()
        expect(tray.get_by_role("listitem")).to_have_count(3)
        chat.question.click()
        chat.write("What is all this?")
        expect(chat.page.locator("#chat-estimate")).to_contain_text("~")
        chat.keep(tmp_path, "chat-attachments")
        chat.press("Enter")
        pair = chat.answered("What is all this?")
        expect(tray).to_have_count(0)
        listed = pair.get_by_role("list", name="Attachments")
        expect(listed.get_by_role("img")).to_be_visible()
        assert listed.get_by_role("img").evaluate("each => each.decode().then(() => each.naturalWidth)") == 1
        with chat.page.expect_download() as download:
            listed.get_by_role("link", name="notes.md").click()
        assert Path(download.value.path()).read_bytes() == b"# Remember the milk"
        chat.keep(tmp_path, "chat-attached")

        chat.press("Control+i", "Escape", "Shift+R")
        expect(tray.get_by_role("listitem")).to_have_count(3)
        chat.press("Escape")
        expect(tray).to_have_count(0)
    sent = json.dumps(talk.sent[-1])
    assert base64.b64encode(PNG).decode() in sent
    assert "# Remember the milk" in sent
    assert "picked.csv" in sent
    assert "and tea" not in sent


def test_unsupported_attachment_is_reported(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        bring(chat, "drop", ("run.exe", "application/x-msdownload", b"MZ\x90\x00\x03\x00\x00\x00"))
        expect(chat.toast).to_contain_text("run.exe")
        expect(chat.page.get_by_role("list", name="Attachments")).to_have_count(0)


def test_files_alone_are_a_question_too(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        expect(chat.page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        bring(chat, "paste", ("", "image/png", PNG))
        chat.page.get_by_role("button", name="Send", exact=True).click()
        chat.answered("attachments only")
    assert len(talk.sent) == 1


def test_text_that_is_pasted_stays_text(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.page.evaluate("navigator.clipboard.writeText('Two\\nlines')")
        chat.question.click()
        chat.press("Control+v")
        expect(chat.question).to_have_value("Two\nlines")
        expect(chat.page.get_by_role("list", name="Attachments")).to_have_count(0)
