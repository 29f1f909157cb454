"""The size of a chat's next request wherever it is shown: on the Send button, in the preview, as what the pairs, the
system prompt and the question take, at the boundary, and on the bar of the request that is held."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.local_model import needs_model
from tests.person import Person
from tests.upstream import Upstream, streams

LIMIT = 1_400
CONFIG = """
[providers.acme]
dialect = "openai-chat"
base_url = "{url}"
key_env = ""
[models."acme/m"]
context_window = {limit}
[local]
context_window = {limit}
"""
SAID = "The sea is deep, and 4,096 fish are in it. Nobody has counted them twice. " * 4


class ChatUser:
    """Asks in a chat on the page, and reads its figures."""

    def __init__(self, person: Person, model: str) -> None:
        self.person, self.model = person, model
        person.put("/api/chat/views/v", {"model": model})

    def post(self, path: str, text: str, **more: Any) -> Any:
        status, told = self.person.ask("POST", f"/api/chat/{path}", {"view": "v", "text": text, **more})
        assert status == 200, told
        return told

    def ask(self, text: str) -> None:
        pair = self.post("send", text)["pair"]
        rows = "/api/chat/views/v/rows"
        states = ("complete", "failed", "cancelled")
        shown = self.person.until(
            lambda: self.person.get(rows)["rows"], lambda rows: rows[-1]["id"] == pair and rows[-1]["state"] in states
        )
        assert shown[-1]["state"] == "complete", shown[-1]

    def compare(self, text: str) -> dict[str, Any]:
        """The view, once all figures have been found to be the same."""
        sent, preview = self.post("estimate", text), self.post("preview", text)
        view, rows = self.person.get("/api/chat/views/v"), self.person.get("/api/chat/views/v/rows")["rows"]
        pairs = [row["tokens"]["tokens"] for row in rows if row["standing"] == "included"]
        room = view["room"]
        assert [preview[name] for name in ("tokens", "low", "high")] == [
            sent[name] for name in ("tokens", "low", "high")
        ]
        assert room["system"] + room["tools"] + sum(pairs) + sent["prompt"] == sent["tokens"]
        assert view["history_tokens"] == sum(pairs) <= room["history"]
        assert dict(view["counter"]["breakdown"])["Predicted tokens"] == sum(pairs)
        # What was planned to fit fits: the whole band, beside the reply.
        assert sent["high"] + room["reply"] <= room["limit"]
        assert room["history"] == room["limit"] - sum(
            room[name] for name in ("system", "tools", "user", "reply", "margin")
        )
        self.post("send", text, hold=True)
        (held,) = self.person.held()
        bar = self.person.view(held)["tokens"]
        assert [bar[name] for name in ("estimate", "low", "high")] == [sent[name] for name in ("tokens", "low", "high")]
        assert sum(each["tokens"] for each in bar["categories"]) == sent["tokens"]
        assert self.person.act(held, "drop")[0] == 200
        self.person.ended(held)
        return {**view, "sent": sent, "pairs": pairs}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with upstream_in_background() as made:
        yield made


def test_it_is_the_same_figure_before_and_after_the_provider_has_counted(upstream: Upstream, tmp_path: Path) -> None:
    with served(tmp_path, CONFIG.format(url=upstream.url, limit=LIMIT)) as server:
        user = ChatUser(Person(server), "acme/m")
        user.compare("How many fish are in the sea?")
        for turn in range(1, 9):
            counted = len(user.post("preview", f"And in sea {turn}?")["body"]) // 3  # a vocabulary of its own
            usage = {"prompt_tokens": counted, "completion_tokens": 80, "total_tokens": counted + 80}
            said = {"choices": [{"index": 0, "delta": {"content": SAID}, "finish_reason": "stop"}], "usage": usage}
            upstream.script = [streams(b"data: " + json.dumps(said).encode() + b"\n\ndata: [DONE]\n\n")]
            user.ask(f"And in sea {turn}?")
            view = user.compare("And how deep is it?")
        assert 0 < view["start"] < view["rows"], "the boundary is in the middle"


@needs_model
def test_it_is_exact_for_the_embedded_model(tmp_path: Path) -> None:
    with served(tmp_path, CONFIG.format(url="http://127.0.0.1:9", limit=LIMIT)) as server:
        user = ChatUser(Person(server), "local")
        view = user.compare("Count to 12, ñandú!")
        assert view["sent"]["low"] == view["sent"]["high"]
        assert view["room"]["margin"] == 0
