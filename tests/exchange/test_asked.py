from sightline.exchange.client_request import ClientRequest


def test_of_headers_with_one_name_the_first_counts() -> None:
    asked = ClientRequest("openai-chat", b"", (("X-A", "1"), ("x-a", "2"), ("B", "3")), "/")
    assert asked.headers_by_name() == {"x-a": "1", "b": "3"}
