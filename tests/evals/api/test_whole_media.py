import asyncio
import base64
import hashlib
import json
from pathlib import Path

from sightline.evals.api.calls import WholeMedia
from sightline.evals.core.result import SCHEME
from sightline.model.parts import Document, Image, Inline, Link
from sightline.web.bodies import Query
from tests.evals.api.eval_desk import EvalDesk, told
from tests.recordings import exchange, store_with
from tests.store.traffic import NOON, chat_stream
from tests.upstream import Upstream

DATA = b"\x89PNG\r\n\x1a\n" + bytes(8000)
CODED = base64.b64encode(DATA).decode()
NAMED = Image(Link(SCHEME + hashlib.sha256(CODED.encode()).hexdigest(), "image/png"))
SUITE = """
name: large
tests:
  - id: large
    criteria: x
    input: [{role: user, content: [{type: text, value: See France.}, {type: image, value: large.png}]}]
    assertions: [{type: contains, value: Paris}]
"""


def test_a_picture_that_is_named_by_its_hash_is_found_in_the_record_or_in_the_folder(tmp_path: Path) -> None:
    async def story() -> None:
        url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{CODED}"}}
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [url]}]}).encode()
        folder = {"evals/a.png": DATA, "evals/b.png": b"another"}
        async with store_with(tmp_path, exchange("x_1", body, chat_stream("A dot."))) as store:
            media = WholeMedia(store, folder.get, lambda: NOON)
            found = await media.of(NAMED, ["x_1", "x_gone"], [])
            assert isinstance(found.source, Inline)
            assert found.source.data == CODED
            found = await media.of(NAMED, [], ["evals/gone.png", "evals/b.png", "evals/a.png"])
            assert found.source == Inline("image/png", CODED)
            assert await media.of(NAMED, ["x_gone"], ["evals/b.png"]) == NAMED
            link = Document(Link("https://example.com/a.pdf"))
            assert await media.of(link, ["x_1"], []) == link

    asyncio.run(story())


def test_a_large_picture_of_a_case_is_given_out(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        (desk.root / "evals" / "large.png").write_bytes(DATA)
        desk.file.write_text(SUITE)
        await desk.run("e_1")
        answer = await desk.evals.media("e_1", "0", Query("case=large&target=acme"))
        assert answer.body == DATA

    told(story, tmp_path)
