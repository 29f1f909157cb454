import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.catalog.facts import Prices
from sightline.cli.answer import AnswerView, band, summary
from sightline.cli.terminal import open_input, print_fault, read, read_available, say, write
from sightline.errors import Code, Fault
from sightline.model.events import (
    Ended,
    FrameBroken,
    PartReceived,
    RefusalReceived,
    StreamEvent,
    TextReceived,
    ThinkingReceived,
)
from sightline.model.exchange import AttemptStarted
from sightline.model.parts import Image, Inline
from sightline.model.reply import Reply, Usage
from sightline.tokens.estimate import Estimate
from sightline.tokens.ledger import Wait


class Full(io.RawIOBase):
    """A disk without space."""

    def writable(self) -> bool:
        return True

    def write(self, _data: object) -> int:
        raise OSError(28, "No space left on device")


def test_words_never_go_where_the_result_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("lost")
    assert capsys.readouterr().out == ""


def test_a_full_stderr_loses_words_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    say("lost")


def test_fault_is_printed_as_error_hint_and_note_lines(capsys: pytest.CaptureFixture[str]) -> None:
    fault = Fault(Code.USAGE, "two\n lines", hint="Do this.")
    fault.add_note("and this was noted")
    print_fault(fault)
    assert capsys.readouterr().err == "error[usage]: two lines\nhint: Do this.\nand this was noted\n"


def test_a_closed_or_full_stdout_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    write(b"")
    with pytest.raises(Fault, match="stdout is closed"):
        write(b"x")


def test_a_full_disk_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Out:
        buffer = Full()

    monkeypatch.setattr(sys, "stdout", Out())
    with pytest.raises(Fault, match="stdout: No space left on device"):
        write(b"x")


def test_a_closed_stdin_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Fault, match="stdin is closed"), open_input("-"):
        pass


def test_a_file_is_read_whole_or_as_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert read(str(path)) == b"abc"
    with open_input(str(path)) as stream:
        assert read_available(stream) == b"abc"
        assert read_available(stream) == b""


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="Is a directory"):
        read(str(tmp_path))


@pytest.mark.parametrize(
    ("events", "out", "err"),
    [
        # In a pipe, stdout gets the words and nothing else, of the first choice only.
        ([ThinkingReceived(0, "hm"), TextReceived(1, "a\x1b[31m"), RefusalReceived(2, "b"), Ended()], "a\x1b[31mb", ""),
        ([TextReceived(0, "one"), TextReceived(0, "two", choice=1)], "one", ""),
        # A character that comes in two halves is one; half of one does no harm.
        ([TextReceived(0, "a\ud83d"), TextReceived(0, "\ude00"), TextReceived(0, "")], "a😀", ""),
        ([TextReceived(0, "a\ud83d")], "a\ufffd", ""),
        ([TextReceived(0, "\ude00"), TextReceived(0, "b")], "\ufffdb", ""),
        # What cannot be shown is noted.
        (
            [PartReceived(0, Image(Inline("image/png", "")))],
            "",
            "note: the answer contains a part that is not text (image)\n",
        ),
        ([FrameBroken("/1", "odd")], "", "note: a piece of the answer cannot be read: odd\n"),
    ],
)
def test_an_answer_in_a_pipe(
    events: list[StreamEvent], out: str, err: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    answer = AnswerView()
    for event in events:
        answer.on_event(event)
    answer.finish()
    assert capsysbinary.readouterr() == (out.encode(), err.encode())


def test_retries_are_noted_with_reason_and_wait(capsys: pytest.CaptureFixture[str]) -> None:
    answer = AnswerView()
    answer.on_attempt(AttemptStarted(1, "acme", "0"))
    answer.on_attempt(AttemptStarted(2, "acme", "0", "rate_limited", "429: slow\x1b[2J", waited=1.25))
    answer.on_attempt(AttemptStarted(3, "acme", "0", "network", waited=0.0))
    assert capsys.readouterr().err == (
        "note: attempt 2 after 1.2 s (rate_limited: 429: slow\\x1b[2J)\nnote: attempt 3 after 0.0 s (network)\n"
    )


def test_reason_for_waiting_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    AnswerView().on_pause(Wait(2.0, "asked", "retry_after"))
    AnswerView().on_pause(Wait(2.0, "used_up", "rpm", 5))
    assert capsys.readouterr().err == (
        "note: waiting 2.0 s: the provider asked for it\nnote: waiting 2.0 s: the limit of rpm is used up\n"
    )


def on_terminal(code: str) -> str:
    """What a terminal gets from this program."""
    master, slave = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=slave, stderr=slave, stdin=slave, check=True)
    os.close(slave)
    with io.FileIO(master) as terminal:
        return terminal.read(65536).decode().replace("\r\n", "\n")


def test_on_a_terminal_thinking_is_dimmed_and_nothing_foreign_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown_text = on_terminal(
        "from sightline.cli.answer import AnswerView as View\n"
        "from sightline.model.events import TextReceived as Text, ThinkingReceived as Thinking\n"
        "view = View()\n"
        "view.on_event(Thinking(0, 'let me\\x07 see'))\n"
        "view.on_event(Thinking(0, ''))\n"
        "view.on_event(Text(1, 'an\\x1b[2Jswer\\ttab'))\n"
        "view.finish()\n"
    )
    assert shown_text == "\x1b[2mlet me\\x07 see\x1b[0m\nan\\x1b[2Jswer\ttab\n"


def told(usage: Usage | None, prices: Prices | None = None, estimate: Estimate | None = None) -> str:
    return summary(Reply(usage=usage), name="acme/m", prices=prices, estimate=estimate, seconds=1.234)


def test_summary_shows_model_tokens_cost_and_duration() -> None:
    usage = Usage(input_tokens=1200, output_tokens=50, cached_tokens=1000, cache_write_tokens=7, reasoning_tokens=9)
    prices = Prices(input=1.0, output=2.0, cached=1.0, as_of="2026-10")
    line = told(usage, prices, Estimate(1100, 1000, 1300))
    assert line == (
        "acme/m: 1,200 tokens in (1,000 cached, 7 written to the cache, 1,000–1,300 estimated), 50 out (9 thinking), "
        "$0.0013 at prices of 2026-10, 1.23 s"
    )


@pytest.mark.parametrize(
    ("usage", "prices", "estimate", "line"),
    [
        (None, None, None, "acme/m: no usage reported, 1.23 s"),
        (None, None, Estimate(5, 5, 5), "acme/m: 5 tokens in (estimated), 1.23 s"),
        (Usage(input_tokens=5), None, None, "acme/m: 5 tokens in, 1.23 s"),
        (
            Usage(input_tokens=5, output_tokens=1),
            Prices(input=0.0, output=0.0),
            Estimate(5, 5, 5),
            "acme/m: 5 tokens in (5 estimated), 1 out, free, 1.23 s",
        ),
        (
            Usage(input_tokens=1_000_000, output_tokens=0),
            Prices(input=2.5, output=1.0),
            None,
            "acme/m: 1,000,000 tokens in, 0 out, $2.50, 1.23 s",
        ),
    ],
)
def test_what_is_not_known_is_left_out(
    usage: Usage | None, prices: Prices | None, estimate: Estimate | None, line: str
) -> None:
    assert told(usage, prices, estimate) == line


def test_an_estimate_says_how_far_it_may_be_off() -> None:
    assert band(Estimate(7, 7, 7)) == "7"
    assert band(Estimate(1000, 900, 1050)) == "900–1,050"
