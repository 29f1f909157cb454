"""What cannot be sent, what was refused, and what has to wait: each is said where it belongs, and nothing is lost."""

import asyncio
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sightline.app.machine import SystemClock
from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import chat_stage, chatting
from tests.upstream import Play, answer

CONFIG = """
[models."acme/small"]
context_window = 300
[models."acme/slow"]
context_window = 8000
rpm = 1
"""


def refuses(status: int, code: str, message: str, *headers: tuple[str, str]) -> Play:
    body = json.dumps({"error": {"code": code, "message": message, "type": "invalid_request_error"}}).encode()
    return answer(status, body, [("Content-Type", "application/json"), *headers])


def test_a_question_that_is_too_large_is_not_sent_and_stays(talk: ChatDesk, tmp_path: Path) -> None:
    talk.done("PUT", "topics", {"model": "acme/small"})
    with chatting(talk.server) as chat:
        chat.shown.expected.append("422")
        long = "A word and another one. " * 100
        chat.question.fill(long)
        expect(chat.page.locator("#chat-estimate")).to_contain_text("too long")
        chat.press("Enter")
        told = chat.dialog("The question is too large")
        expect(told).to_be_visible()
        chat.keep(tmp_path, "chat-over-budget")
        told.get_by_role("button", name="To the input").click()
        expect(chat.question).to_be_focused()
        expect(chat.question).to_have_value(long)
        expect(chat.feed).to_have_count(0)
    assert talk.sent == []


def test_an_error_is_a_line_with_what_can_be_done(talk: ChatDesk, tmp_path: Path) -> None:
    talk.upstream.script = [refuses(401, "invalid_api_key", "Incorrect API key provided.")]
    with chatting(talk.server) as chat:
        chat.write("Will this work?")
        chat.press("Enter")
        pair = chat.pair("Will this work?")
        trouble = pair.get_by_role("group", name="Error")
        expect(trouble).to_contain_text("[error: auth] ")
        expect(trouble).to_contain_text("Incorrect API key provided.")
        chat.keep(tmp_path, "chat-error")
        trouble.get_by_role("button", name="Re-ask").click()
        expect(chat.question).to_have_value("Will this work?")
        expect(chat.question).to_be_focused()
        talk.answers("Now ", "it does.")
        chat.press("Enter")
        chat.answered("Will this work?")
        expect(chat.feed.get_by_role("article")).to_have_count(1)
        expect(trouble).to_have_count(0)

        talk.upstream.script = [refuses(404, "model_not_found", "The model does not exist.")]
        chat.write("And this?")
        chat.press("Enter")
        expect(chat.pair("And this?").get_by_role("group", name="Error")).to_contain_text("[error: model] ")
        chat.pair("And this?").get_by_role("button", name="Delete").click()
        expect(chat.pair("And this?")).to_have_count(0)


def test_a_rate_limit_leaves_nothing_out(talk: ChatDesk) -> None:
    with chatting(talk.server) as chat:
        chat.ask("One.")
        limited = refuses(429, "rate_limit_exceeded", "Rate limit reached for requests.", ("Retry-After", "3600"))
        talk.upstream.script = [limited]
        chat.write("Two.")
        chat.press("Enter")
        pair = chat.pair("Two.")
        expect(pair.get_by_role("group", name="Error")).to_contain_text("[error: quota] ")
        expect(pair.locator(".pair-note")).to_have_count(0)
        expect(chat.counter).to_have_text("2 / 2")
        sent = [[each["content"] for each in body["messages"]] for body in talk.sent[1:]]
        assert all(each == ["One.", "Hello there.", "Two."] for each in sent)
        chat.shown.expected.append("429")
        chat.write("Three.")
        chat.press("Enter")
        told = chat.dialog("This would exceed the quota")
        expect(told).to_contain_text("the pause that the provider asked for")
        expect(told).to_contain_text("It can be sent at")
        told.get_by_role("button", name="Cancel").click()
        expect(chat.question).to_have_value("Three.")


class HeldClock:
    """The server's clock, whose long waits end when this says so."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        now, sleep = SystemClock.now, SystemClock.sleep

        async def held(clock: SystemClock, seconds: float) -> None:
            if seconds < 20:
                await sleep(clock, seconds)
                return
            gate = asyncio.Event()
            self._waiting.append((asyncio.get_running_loop(), gate))
            await gate.wait()

        patch.setattr(SystemClock, "now", lambda _clock: now() + self.ahead)
        patch.setattr(SystemClock, "sleep", held)

    def forward(self, seconds: float) -> None:
        self.ahead += seconds
        for loop, gate in self._waiting:
            loop.call_soon_threadsafe(gate.set)


def test_what_has_to_wait_says_until_when_and_goes_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    clock = HeldClock(monkeypatch)
    with chat_stage(tmp_path_factory.mktemp("quota"), CONFIG) as talk:
        talk.done("PUT", "topics", {"model": "acme/slow"})
        with chatting(talk.server) as chat:
            chat.shown.expected.append("429")
            chat.ask("One.")
            chat.write("Two.")
            chat.press("Enter")
            told = chat.dialog("This would exceed the quota")
            expect(told).to_contain_text("requests per minute (1)")
            chat.keep(tmp_path, "chat-quota")
            told.get_by_role("button", name="Wait, then send").click()
            pair = chat.pair("Two.")
            notice = pair.get_by_role("alert")
            expect(notice).to_contain_text("requests per minute (1)")
            expect(notice).to_contain_text("Goes on at")
            expect(pair).to_contain_text("waiting…")
            chat.keep(tmp_path, "chat-paused")
            chat.page.reload()
            expect(notice).to_contain_text("Goes on at")
            assert len(talk.sent) == 1
            clock.forward(90)
            chat.answered("Two.")
            expect(notice).to_have_count(0)
            assert len(talk.sent) == 2

            chat.question.click()
            chat.write("Three.")
            chat.press("Enter")
            told.get_by_role("button", name="Wait, then send").click()
            chat.pair("Three.").get_by_role("button", name="Send anyway").click()
            chat.answered("Three.")

            chat.press("Control+i")
            chat.write("Four.")
            chat.press("Enter")
            told.get_by_role("button", name="Wait, then send").click()
            expect(chat.pair("Four.").get_by_role("alert")).to_be_visible()
            chat.press("Control+i", "Escape")
            expect(chat.pair("Four.").get_by_role("group", name="Error")).to_be_visible()
            assert len(talk.sent) == 3

            chat.write("Five.")
            chat.press("Enter")
            told.get_by_role("button", name="Send anyway").click()
            chat.answered("Five.")
