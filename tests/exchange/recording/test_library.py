import json
from pathlib import Path

from sightline.exchange.recording.library import Library, lines_of
from sightline.filters.expression import EVERYTHING
from sightline.filters.parsing import parse
from sightline.model.exchange import ExchangeCancelled, Received
from tests.recordings import exchange, failed, store_with
from tests.store.traffic import NOON, chat_body, chat_stream, noted, sha256


def lines(*words: str, **fields: object) -> list[str]:
    return lines_of("openai-chat", chat_body(*words, **fields), "m")  # type: ignore[arg-type]


async def test_the_same_request_again_gets_the_next_recording_of_it(tmp_path: Path) -> None:
    many = [exchange(f"x_{n}", chat_body("hi", user=f"u{n}"), chat_stream(str(n)), at=NOON + n) for n in range(3)]
    other = exchange("x_9", chat_body("bye"), chat_stream("9"))
    async with store_with(tmp_path, *many, other) as store:
        library = Library(store)
        await library.fill(EVERYTHING, now=NOON)
        assert len(library) == 4
        played = [await library.next(lines("hi")) for _ in range(5)]
        assert [told.id if told else None for told in played] == ["x_0", "x_1", "x_2", "x_2", "x_2"]
        assert await library.next(lines("ho")) is None


async def test_only_what_the_filter_takes_and_what_has_an_answer_is_a_recording(tmp_path: Path) -> None:
    entries = [
        exchange("x_1", chat_body("a"), chat_stream("1")),
        exchange("x_2", chat_body("b"), [b'{"error":{"message":"busy"}}'], end=failed(503), stream=False),
        exchange("x_3", chat_body("c"), end=failed(502, "network")),
        exchange("x_4", chat_body("d"), chat_stream("1"), end=ExchangeCancelled()),
        exchange("x_5", b"no json", chat_stream("1")),
        noted("x_6", [Received("openai-chat", "m", sha256(b"gone")), failed(500)]),
    ]
    async with store_with(tmp_path, *entries) as store:
        library = Library(store)
        await library.fill(EVERYTHING, now=NOON)
        assert len(library) == 2
        narrow = Library(store)
        await narrow.fill(parse("status:ok"), now=NOON)
        assert len(narrow) == 1


def claude(text: str, limit: int) -> bytes:
    said = {"model": "large", "max_tokens": limit, "messages": [{"role": "user", "content": text}]}
    return json.dumps(said).encode()


async def test_a_limit_of_tokens_that_a_dialect_demands_makes_no_difference(tmp_path: Path) -> None:
    entries = [
        exchange("x_1", chat_body("free"), chat_stream("1")),
        exchange("x_2", claude("demanded", 64), [b"{}"], spoken="anthropic", stream=False),
        exchange("x_3", chat_body("limited", max_tokens=5), chat_stream("3")),
    ]
    async with store_with(tmp_path, *entries) as store:
        library = Library(store)
        await library.fill(EVERYTHING, now=NOON)

        async def played(spoken: str, body: bytes) -> str | None:
            told = await library.next(lines_of(spoken, body, "m"), spoken)
            return None if told is None else told.id

        assert await played("anthropic", claude("free", 8192)) == "x_1"
        assert await played("openai-chat", chat_body("demanded")) == "x_2"
        assert await played("anthropic", claude("demanded", 64)) == "x_2"
        assert await played("anthropic", claude("limited", 5)) == "x_3"
        assert await played("openai-chat", chat_body("free", max_tokens=5)) is None, "here it was said freely"
        assert await played("openai-chat", chat_body("limited")) is None
        assert await played("anthropic", claude("limited", 6)) is None
        told = await library.at(lines_of("anthropic", claude("free", 1), "m"), 0, "anthropic")
        assert told is not None


async def test_a_miss_names_the_nearest_recording_and_what_differs(tmp_path: Path) -> None:
    far = exchange("x_1", chat_body("something else"), chat_stream("1"))
    near = exchange("x_2", chat_body("hi", "hello", "list the files", system="Be brief."), chat_stream("2"))
    async with store_with(tmp_path, far, near) as store:
        library = Library(store)
        assert await library.nearest(lines("hi")) is None
        await library.fill(EVERYTHING, now=NOON)
        missed = await library.nearest(lines("hi", "hello", "list the folders", system="Be brief."))
        assert missed.summary.id == "x_2"
        assert missed.difference == "-user: list the files\n+user: list the folders"
        many = "\n".join(f"line {n}" for n in range(40))
        missed = await library.nearest(lines("hi", "hello", many, system="Be brief."))
        assert missed.difference.endswith("(and 25 more lines)")
