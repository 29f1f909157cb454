"""An exchange that passed as it was: in the list by its call, and each of its bodies as what it is."""

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser import NARROW, browsing, looking
from tests.gateway.test_raw_paths import ask
from tests.gateway.test_raw_sockets import echo, only_exchange
from tests.gateway.test_responses_socket import client_of
from tests.gateway_server import Served, served
from tests.page_stage import gallery
from tests.raw_upstream import RawRequest, raw_upstream
from tests.socket_upstream import socket_upstream

BATCH = b"".join(
    b'{"custom_id":"%b","method":"POST","url":"/v1/responses","body":{"model":"m","input":"%b"}}\n' % each
    for each in ((b"first", b"one"), (b"second", b"two"))
)


def picture() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes([40, 120, 200] * 64) for _ in range(64))
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


ANSWERS = {
    "/v1/files": (b'{"id": "file-1", "object": "file"}', "application/json"),
    "/v1/images": (picture(), "image/png"),
    "/v1/audio": (
        b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0",
        "audio/wav",
    ),
    "/v1/page": (b"<h1 id=evil>hello</h1><script>document.title='owned'</script>", "text/html"),
    "/v1/interactions": (b'event: interaction.start\ndata: {"id": "int_1"}\n\n', "text/event-stream"),
    "/v1/blob": (b"\0\1\2" * 999, "application/octet-stream"),
}


def handle(request: RawRequest) -> None:
    request.read()
    body, kind = ANSWERS[request.target]
    request.answer(200, body, ("content-type", kind))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return gallery(tmp_path)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with raw_upstream(handle) as upstream:
        config = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        with served(tmp_path_factory.mktemp("raw"), config) as made:
            yield made


def test_bodies_are_shown_as_what_they_are(gateway: Served, pictures: Path) -> None:
    form = b'--B\r\ncontent-disposition: form-data; name="file"; filename="batch.jsonl"\r\n' \
           b"content-type: application/jsonl\r\n\r\n" + BATCH + b"\r\n--B--\r\n"  # fmt: skip
    ids = {}
    for path in ANSWERS:
        headers = {"content-type": "multipart/form-data; boundary=B"} if path == "/v1/files" else {}
        response, _ = ask(gateway, "POST", f"/p/acme{path}", form if path == "/v1/files" else b"{}", headers)
        ids[path] = response.headers["x-sightline-exchange"]
    with browsing() as browser, looking(browser, gateway) as shown:
        page = shown.page
        row = page.get_by_role("row", name="POST /v1/files")
        expect(row).to_be_visible()
        page.screenshot(path=pictures / "raw-traffic.png")
        row.click()
        request = page.get_by_role("article", name="Request body")
        expect(request).to_contain_text("2 requests")
        request.get_by_text("second").click()
        expect(request.get_by_role("tree", name="Request second")).to_contain_text("two")
        expect(page.get_by_role("article", name="Answer").get_by_role("tree")).to_contain_text("file-1")
        expect(page.get_by_role("heading", level=1)).to_have_text("POST /v1/files")
        page.screenshot(path=pictures / "raw-files.png")
        page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=pictures / "raw-files-narrow-dark.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for path, see in (
            ("/v1/images", lambda card: card.get_by_role("img", name="Answer")),
            ("/v1/audio", lambda card: card.locator("audio[controls]")),
            ("/v1/page", lambda card: card.get_by_text("<h1 id=evil>hello</h1>")),
            ("/v1/interactions", lambda card: card.get_by_text("interaction.start")),
            ("/v1/blob", lambda card: card.get_by_text("This page cannot display it")),
        ):
            page.goto(f"{gateway.url}/#/x/{ids[path]}")
            expect(page.get_by_role("heading", level=1)).to_have_text(f"POST {path}")
            expect(see(page.get_by_role("article", name="Answer"))).to_be_visible()
        assert page.locator("#evil").count() == 0
        assert page.title() != "owned"
        page.goto(f"{gateway.url}/#/x/{ids['/v1/images']}")
        size = "() => document.querySelector('.raw-picture')?.naturalWidth === 64"
        page.wait_for_function(size)
        page.screenshot(path=pictures / "raw-picture.png")
        page.get_by_role("button", name="Send again").click()
        expect(page.get_by_text("Replay of")).to_be_visible()


def test_the_frames_of_a_socket_are_shown_and_cannot_be_sent_again(tmp_path: Path, pictures: Path) -> None:
    with socket_upstream(echo) as upstream:
        config = f'[providers.acme]\nbase_url = "{upstream.url}"\n'
        with served(tmp_path, config) as gateway:
            with client_of(gateway, "/p/acme/v1/realtime") as socket:
                socket.send('{"type": "session.update"}')
                socket.recv(timeout=30)
            ended = only_exchange(gateway)
            with browsing() as browser, looking(browser, gateway) as shown:
                page = shown.page
                page.goto(f"{gateway.url}/#/x/{ended['id']}")
                answer = page.get_by_role("article", name="Answer")
                expect(answer).to_contain_text("3 events")
                expect(answer.locator("summary")).to_have_text(
                    ['client{"type": "session.update"}', 'server{"type": "session.update"}', re.compile("^close")]
                )
                expect(page.get_by_role("button", name="Send again")).to_have_count(0)
                page.screenshot(path=pictures / "raw-socket.png")
                page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
                page.emulate_media(color_scheme="dark")
                page.screenshot(path=pictures / "raw-socket-narrow-dark.png")
