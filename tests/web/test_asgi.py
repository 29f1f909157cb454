import asyncio

from sightline.web.asgi import ResponseBody, ResponseStart, WebResponse, header, response_body, response_start


def test_a_whole_answer_tells_its_length() -> None:
    sent: list[ResponseStart | ResponseBody] = []

    async def send(message: ResponseStart | ResponseBody) -> None:
        sent.append(message)

    asyncio.run(WebResponse(404, b"none", [(b"a", b"b")]).to(send))
    assert sent == [response_start(404, [(b"a", b"b"), (b"content-length", b"4")]), response_body(b"none", more=False)]


def test_the_first_header_of_a_name_counts() -> None:
    headers = [(b"a", b"\xe9"), (b"a", b"2")]
    assert header(headers, b"a") == "é"
    assert header(headers, b"b") == ""
