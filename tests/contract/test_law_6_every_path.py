"""Law 6 on every path: whatever masks and edits there are, the hash that was shown, previewed and recorded is that of
what the provider got. The gateway, the chat, runs with tools, evals, `ask` and replays, held and not held."""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sightline.cli.program import main
from sightline.editing.masks import read_masks
from sightline.exchange.interception.core.rules import Interception
from sightline.exchange.interception.store import KeptInterception
from sightline.model.parts import ToolCall
from tests.background import upstream_in_background
from tests.chat.api.http_stage import ChatDesk, chat_desk
from tests.cli.recorded_folder import stand_alone_in
from tests.desk_stage import _asked as posted
from tests.examples import examples
from tests.loop_stage import calls, says
from tests.running_stage import plays
from tests.upstream import Talk, Upstream

TOOLS = '''
def weigh(thing: str) -> str:
    """Weigh a thing on the scales."""
    return f"{thing}: 3 g"

def count(things: int) -> str:
    """Count things one by one."""
    return str(things)
'''
CONFIG = '[tools.scales]\npython = "scales.py"\nallow = ["weigh", "count"]\n'
PROMPT = "You are a shop assistant.\nAnswer in one line.\nGit status: clean"
WORDS = ("How much is the tea?", "Weigh the red apples, please.", "And what does the cheese cost today?")


def patch(kind: str, old: str, new: str) -> dict[str, Any]:
    return {"scope": "all", "kind": "patch", "anchor": {"kind": kind}, "hunks": [{"old": old, "new": new}]}


MASKS = (
    {"scope": "all", "kind": "strip", "strip": {"class": "tool", "tool": "weigh"}},
    {"scope": "all", "kind": "strip", "strip": {"class": "tool_results"}},
    {"scope": "session", "name": "chat", "kind": "strip", "strip": {"class": "thinking"}},
    patch("system", "one line", "three lines"),
    patch("user", "tea", "water"),
    patch("user", "the", "a"),
    patch("user", "nowhere to be found", ""),
    patch("tools", "Weigh", "Measure"),
)
SOME_MASKS = st.lists(st.sampled_from(MASKS), max_size=4, unique_by=json.dumps)
EDITS = st.lists(st.sampled_from(("words", "more", "delete", "undo", "redo", "reset", "keep", "keep all")), max_size=4)


HOW: dict[str, Any] = {
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),  # to make an example smaller would take minutes
}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Model:
    """Weighs as often as it has `left`, where it may, and then answers."""

    upstream: Upstream
    left: int = 0

    async def __call__(self, talk: Talk) -> None:
        body = self.upstream.seen[-1].json()
        offered = [tool["function"]["name"] for tool in body.get("tools", [])]
        reply = says("Ok.")
        if "weigh" in offered and self.left:
            self.left -= 1
            reply = calls(ToolCall(f"c{self.left}", "weigh", '{"thing": "tea"}'))
        await plays(reply, stream=bool(body.get("stream")))(talk)


# --- through the server -----------------------------------------------------------------------------


class Shop:
    """A chat desk with a gateway before the same provider, and a person who decides about what is held."""

    def __init__(self, desk: ChatDesk, pool: ThreadPoolExecutor) -> None:
        self.desk = desk
        self.person = desk.person
        self.pool = pool
        self.model = Model(desk.upstream)
        desk.upstream.script = [self.model]

    @property
    def last(self) -> str:
        """The hash of what the provider got last."""
        return sha256(self.desk.upstream.seen[-1].body)

    def check(self, exchange: str) -> str:
        """The exchange went out as it is on record; its hash."""
        view = self.person.ended(exchange)
        sent = [sha256(seen.body) for seen in self.desk.upstream.seen]
        assert view["body_sha256"] == view["hashes"]["sent"]
        assert view["body_sha256"] in sent
        tried = {fact["sha256"] for fact in view["facts"] if fact["kind"] in ("attempt", "released")}
        assert tried == {view["body_sha256"]}
        return str(view["body_sha256"])

    def decide(self, edits: list[str], *, count: int = 1) -> str:
        """Edit the held request and release it; the hash that was on screen."""
        exchange = self.person.held(count)[-1]
        for edit in edits:
            view = self.person.view(exchange)
            sections = [each for each in view["sections"] if each["editable"] and not each["deleted"]]
            at = sections[-1]["id"] if sections else "s1"
            operation: dict[str, Any] = {"op": edit}
            if edit == "words":
                operation = {
                    "op": "set_text",
                    "section": at,
                    "text": f"{sections[-1]['text']} Really." if sections else "",
                }
            elif edit == "more":
                operation = {"op": "set_text", "section": at, "text": "Another question altogether?", "keep": "all"}
            elif edit == "delete":
                operation = {"op": "delete", "section": view["sections"][0]["id"], "keep": "session"}
            elif edit.startswith("keep"):
                operation = {"op": "keep", "scope": "all"}
            self.person.edit(exchange, **operation)  # some are refused, and change nothing
        view = self.person.view(exchange)
        while not view["validity"]["ok"]:
            view = self.person.edited(exchange, op="undo")
        status, told = self.person.release(exchange, view["body_sha256"])
        assert status == 200, told
        self.exchange = exchange
        return str(view["body_sha256"])

    def gateway(self, words: str) -> "Future[Any]":
        body = {
            "model": "large",
            "stream": True,
            "messages": [{"role": "system", "content": PROMPT}, {"role": "user", "content": words}],
            "tools": [{"type": "function", "function": {"name": "weigh", "description": "Weigh.", "parameters": {}}}],
        }
        url = f"{self.desk.server.url}/p/acme/s/shop/v1/chat/completions"
        return self.pool.submit(posted, url, json.dumps(body).encode())


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("every_path")
    (folder / "scales.py").write_text(TOOLS)
    with chat_desk(folder, CONFIG) as desk, ThreadPoolExecutor(4) as pool:
        topic = desk.done("POST", "topics", {"name": "Scales", "toolsets": ["scales"]})["id"]
        desk.look("plain")
        desk.look("tools", topic=topic)
        yield Shop(desk, pool)


def cleared(shop: Shop, masks: list[Any], *, held: bool) -> None:
    shop.person.put("/api/masks", masks)
    shop.person.put("/api/interception", {"mode": "every" if held else "off"})


@settings(max_examples=examples(8), **HOW)
@given(masks=SOME_MASKS, held=st.booleans(), edits=EDITS, words=st.sampled_from(WORDS))
def test_the_gateway(shop: Shop, masks: list[Any], held: bool, edits: list[str], words: str) -> None:
    cleared(shop, masks, held=held)
    asking = shop.gateway(words)
    shown = shop.decide(edits) if held else ""
    got = asking.result(60)
    assert got.status == 200
    assert shop.check(got.exchange) == shop.last == (shown or shop.last)
    # What is sent again is those very bytes, whatever is kept by now.
    before = shop.desk.upstream.seen[-1].body
    shop.person.put("/api/interception", {"mode": "off"})
    for order, sent in (({}, before), ({"body": before.decode() + " "}, before + b" ")):
        _, told = shop.person.act(got.exchange, "replay", order)
        assert shop.check(told["id"]) == sha256(sent) == shop.last
    _, told = shop.person.act(got.exchange, "replay", {"masks": True})
    assert shop.check(told["id"]) == shop.last


@settings(max_examples=examples(8), **HOW)
@given(
    masks=SOME_MASKS,
    held=st.booleans(),
    edits=EDITS,
    words=st.sampled_from(WORDS),
    view=st.sampled_from(("plain", "tools")),
)
def test_the_chat_and_its_runs_with_tools(
    shop: Shop, masks: list[Any], held: bool, edits: list[str], words: str, view: str
) -> None:
    cleared(shop, masks, held=False)
    desk = shop.desk
    preview = desk.done("POST", "preview", {"view": view, "text": words})
    assert sha256(preview["body"].encode()) == preview["body_sha256"]
    count = len(desk.upstream.seen)
    shop.model.left = 1
    order = {"view": view, "text": words, "expect_sha256": preview["body_sha256"], "hold": held}
    pair = desk.done("POST", "send", order)["pair"]
    shown = shop.decide(edits) if held else preview["body_sha256"]
    ended = desk.ended(pair, view)
    assert ended["state"] == "complete", ended["trouble"]
    sent = [sha256(seen.body) for seen in desk.upstream.seen[count:]]
    assert sent[0] == shown
    if held and not edits:
        assert sent[0] == preview["body_sha256"]
    assert shop.check(ended["exchange"]) == sent[-1]
    if ended["user_text"] != words:
        assert ended["is_edited"]
        assert ended["user_text"] in desk.upstream.seen[count].body.decode()
    cleared(shop, [], held=False)
    desk.done("POST", "delete", {"ids": [pair]})


# --- by commands --------------------------------------------------------------------------------------

SUITE = f"""
tests:
  - id: price
    criteria: It names a price.
    input:
      - {{role: system, content: {json.dumps(PROMPT)}}}
      - {{role: user, content: {json.dumps(WORDS[0])}}}
    assertions: [{{type: contains, value: Ok}}]
"""


class Counter:
    """A folder to run commands in, and the provider that they ask."""

    def __init__(self, folder: Path, upstream: Upstream) -> None:
        self.folder = folder
        self.upstream = upstream

    def keep(self, masks: list[Any]) -> None:
        """The masks of the data folder, as a server would have written them."""
        KeptInterception(self.folder / "data").write(Interception(), read_masks(masks))


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counter]:
    """A folder with a configuration, and its provider."""
    folder = tmp_path_factory.mktemp("commands")
    with upstream_in_background() as upstream, pytest.MonkeyPatch.context() as patched:
        stand_alone_in(folder, patched)
        (folder / "scales.py").write_text(TOOLS)
        (folder / "suite.yaml").write_text(SUITE)
        (folder / "sightline.toml").write_text(
            f'[ask]\nmodel = "acme/m"\n[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
            '[models."m"]\nproviders = ["acme"]\ncontext_window = 9000\n' + CONFIG
        )
        upstream.script = [Model(upstream)]
        yield Counter(folder, upstream)


@settings(max_examples=examples(4), **HOW)
@given(masks=SOME_MASKS, words=st.sampled_from(WORDS), tools=st.booleans())
def test_ask(
    counter: Counter, capfdbinary: pytest.CaptureFixture[bytes], masks: list[Any], words: str, tools: bool
) -> None:
    upstream = counter.upstream
    counter.keep(masks)
    order = ["ask", "-s", PROMPT, "--quiet", *(["--tools", "scales.py", "--yes"] if tools else []), words]
    capfdbinary.readouterr()
    assert main([*order, "--dry-run"]) == 0
    shown, count = capfdbinary.readouterr().out, len(upstream.seen)
    upstream.script = [Model(upstream, left=1)]
    assert main(order) == 0
    assert upstream.seen[count].body == shown
    if any(mask.get("hunks") == [{"old": "one line", "new": "three lines"}] for mask in masks):
        assert b"three lines" in shown


@settings(max_examples=examples(3), **HOW)
@given(masks=SOME_MASKS)
def test_evals(counter: Counter, capfdbinary: pytest.CaptureFixture[bytes], masks: list[Any]) -> None:
    upstream = counter.upstream
    counter.keep(masks)
    capfdbinary.readouterr()
    assert main(["eval", "preview", "suite.yaml", "price", "--as", "wire"]) == 0
    shown, count = capfdbinary.readouterr().out, len(upstream.seen)
    assert main(["eval", "run", "suite.yaml", "--no-cache", "--json"]) == 0
    assert upstream.seen[count].body == shown.rstrip(b"\n")
