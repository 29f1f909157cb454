import asyncio

from sightline.web.asgi import Answer, Said, Started, header, said, started


def test_a_whole_answer_tells_its_length() -> None:
    sent: list[Started | Said] = []

    async def send(message: Started | Said) -> None:
        sent.append(message)

    asyncio.run(Answer(404, b"none", [(b"a", b"b")]).to(send))
    assert sent == [started(404, [(b"a", b"b"), (b"content-length", b"4")]), said(b"none", more=False)]


def test_the_first_header_of_a_name_counts() -> None:
    headers = [(b"a", b"\xe9"), (b"a", b"2")]
    assert header(headers, b"a") == "é"
    assert header(headers, b"b") == ""
