"""`sightline forget`: what goes, how it asks, and that nothing of it is left."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.cli.program import main
from sightline.cli.terminal import size_of
from sightline.store.sqlite import open_store
from tests.cli.recorded_folder import fill, folder_of, traffic
from tests.gateway_server import served
from tests.recordings import exchange
from tests.store.traffic import NOON, chat_body, chat_stream, prices
from tests.terminal_stage import seated
from tests.upstream import Upstream

FIRST, SECOND = (f"x_{number:020x}" for number in (1, 2))
WORD = "planted-Zq7xKw"
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with folder_of(tmp_path, monkeypatch) as upstream:
        fill(
            tmp_path / "data",
            exchange(FIRST, chat_body(f"{WORD} asked"), chat_stream(WORD, "said"), session="one"),
            exchange(SECOND, chat_body("more"), chat_stream("fine"), session="two"),
        )
        yield upstream


def ran(capsysbinary: Captured, *words: str, status: int = 0) -> str:
    assert main(list(words)) == status
    return capsysbinary.readouterr().err.decode()


def ids(capsysbinary: Captured) -> list[object]:
    return [each["id"] for each in traffic(capsysbinary)]


def test_a_dry_run_says_what_would_go_and_leaves_it(capsysbinary: Captured) -> None:
    told = ran(capsysbinary, "forget", "session:one", "--dry-run")
    assert told.startswith("1 exchange would be forgotten, ")
    assert told.rstrip().endswith(("bytes", "kB"))
    assert ids(capsysbinary) == [SECOND, FIRST]


def test_with_yes_it_is_gone_and_the_rest_is_there(capsysbinary: Captured, tmp_path: Path) -> None:
    told = ran(capsysbinary, "forget", "text:planted", "--yes")
    assert "1 exchange forgotten, " in told
    assert ids(capsysbinary) == [SECOND]
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path for path in files if WORD.encode() in path.read_bytes()] == []
    assert "no recorded exchange matches" in ran(capsysbinary, "forget", "text:planted", "--yes")


def test_without_a_terminal_it_needs_yes(capsysbinary: Captured) -> None:
    told = ran(capsysbinary, "forget", "id:*", status=2)
    assert "hint: Add --yes" in told
    assert len(ids(capsysbinary)) == 2


@pytest.mark.parametrize("words", [[""], ["model:"], []])
def test_a_filter_that_says_nothing_is_refused(capsysbinary: Captured, words: list[str]) -> None:
    assert "hint" in ran(capsysbinary, "forget", *words, "--yes", status=2)
    assert len(ids(capsysbinary)) == 2


@pytest.mark.parametrize(("answers", "left"), [(("y", "2"), 0), (("y", "no"), 2), (("n",), 2)])
def test_at_a_terminal_it_asks_twice(
    capsysbinary: Captured, tmp_path: Path, answers: tuple[str, ...], left: int
) -> None:
    questions = ("Forget 2 exchanges? [y/N]", "This cannot be undone. Type 2 to go on:")
    with seated(["forget", "id:*"], tmp_path, os.environ) as seat:
        for question, answer in zip(questions, answers, strict=False):
            seat.answer(question, answer)
        seat.until("2 exchanges forgotten" if not left else "nothing was deleted")
    assert len(ids(capsysbinary)) == left


def test_copies_go_too_from_runs_and_chats_unless_they_are_to_stay(capsysbinary: Captured, tmp_path: Path) -> None:
    answer = f'{{"kind":"answered","id":"p","answer":{{"messages":[],"exchange":"{FIRST}"}}}}'
    lines = {
        "chat": [f'{{"kind":"asked","pair":{{"id":"p","user_text":"{WORD}","state":"sending"}}}}', answer],
        **{log: [f'{{"exchange":"{FIRST}","text":"{WORD}"}}'] for log in ("run:r_1", "eval:e_1")},
        "eval-answers:m": [f'{{"exchange":"{FIRST}"}}'],
        "run:r_2": ['{"exchange":"x_other","text":"kept"}'],
    }

    async def story(*, is_written: bool) -> list[str]:
        store = await open_store(tmp_path / "data", prices=prices, now=lambda: NOON)
        for log, texts in lines.items() if is_written else ():
            await store.logbook.append(log, 0, [text.encode() for text in texts], NOON)
        logs = sorted(log.name for log in await store.logbook.logs())
        await store.close()
        return logs

    asyncio.run(story(is_written=True))
    told = ran(capsysbinary, "forget", "session:one", "--dry-run")
    assert "with all of " in told
    assert "run:r_1" in told
    assert "eval:e_1" in told
    assert "with their texts in chat" in told
    assert "stay, because of --no-copies" in ran(capsysbinary, "forget", "session:one", "--dry-run", "--no-copies")
    ran(capsysbinary, "forget", f"id:{FIRST}", "--yes")
    assert asyncio.run(story(is_written=False)) == ["chat", "eval-answers:m", "run:r_2"]
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path for path in files if WORD.encode() in path.read_bytes()] == []


def test_through_a_running_server(capsysbinary: Captured, tmp_path: Path) -> None:
    with served(tmp_path, (tmp_path / "sightline.toml").read_text()) as server:
        assert "1 exchange would be forgotten" in ran(capsysbinary, "forget", "session:one", "--dry-run")
        assert "1 exchange forgotten" in ran(capsysbinary, "forget", "session:one", "--yes")
        assert [each["id"] for each in server.api("/api/exchanges")["exchanges"]] == [SECOND]
        files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        assert [path for path in files if WORD.encode() in path.read_bytes()] == []


def test_sizes_are_for_people() -> None:
    assert [size_of(count) for count in (1, 999, 1500, 2_500_000)] == ["1 byte", "999 bytes", "1.5 kB", "2.5 MB"]
