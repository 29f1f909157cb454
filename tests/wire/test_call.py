"""Request templates, and paths that stay below a base URL."""

import pytest

from sightline.errors import Code, Fault
from sightline.wire.call import HttpRequest, RequestTemplate, Variable, can_stray

KEY = Variable("ACME_API_KEY", "Bearer ", help="Get one at acme.example.")


def test_variables_are_filled_in_and_everything_else_stays() -> None:
    headers = (("authorization", KEY), ("x-team", "blue"), ("x-trace", Variable("TRACE", "<", ">", optional=True)))
    call = RequestTemplate("POST", "https://e.org/v1?a=b", headers, b"{}")
    assert call.fill({"ACME_API_KEY": " sk-1\n", "TRACE": "7"}) == HttpRequest(
        "POST",
        "https://e.org/v1?a=b",
        (("authorization", "Bearer sk-1"), ("x-team", "blue"), ("x-trace", "<7>")),
        b"{}",
    )


def test_an_optional_variable_that_is_not_set_takes_its_header_along() -> None:
    call = RequestTemplate("POST", "https://e.org", (("x-trace", Variable("TRACE", optional=True)),), b"")
    assert call.fill({}).headers == ()
    assert call.fill({"TRACE": "  "}).headers == ()


@pytest.mark.parametrize("environment", [{}, {"ACME_API_KEY": " "}], ids=["unset", "blank"])
def test_a_key_that_is_not_set_is_named_with_the_way_to_get_one(environment: dict[str, str]) -> None:
    with pytest.raises(Fault) as caught:
        RequestTemplate("POST", "https://e.org", (("authorization", KEY),), b"").fill(environment)
    assert caught.value.code is Code.AUTH
    assert caught.value.message == "the variable ACME_API_KEY is not set"
    assert caught.value.hint == "Set ACME_API_KEY in the environment. Get one at acme.example."


@pytest.mark.parametrize("value", ["sk-1\r\nx-evil: 1", "sk\x00", "sk\x7f"], ids=repr)
def test_a_key_with_a_line_break_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(Fault) as caught:
        RequestTemplate("POST", "https://e.org", (("authorization", KEY),), b"").fill({"ACME_API_KEY": value})
    assert caught.value.code is Code.AUTH
    assert "sk" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("given", ["https://e.org", "https://e.org/", "HTTPS://e.org//", " http://e.org/ "])
def test_an_address_from_the_environment_may_end_in_a_slash(given: str) -> None:
    url = RequestTemplate("POST", Variable("ACME_URL", suffix="/v1/chat"), (), b"").fill({"ACME_URL": given}).url
    assert url == f"{given.strip().rstrip('/')}/v1/chat"


def test_an_address_without_a_path_behind_it_stays_as_it_is() -> None:
    assert (
        RequestTemplate("POST", Variable("ACME_URL"), (), b"").fill({"ACME_URL": "https://e.org/"}).url
        == "https://e.org/"
    )


@pytest.mark.parametrize("given", ["", "e.org", "sk-123", "ftp://e.org"])
def test_what_is_no_address_is_a_matter_of_configuration(given: str) -> None:
    with pytest.raises(Fault) as caught:
        RequestTemplate("POST", Variable("ACME_URL", suffix="/v1"), (), b"").fill({"ACME_URL": given})
    assert caught.value.code is Code.CONFIG
    assert "ACME_URL" in caught.value.message
    assert caught.value.hint
    assert "sk-123" not in caught.value.message


def test_an_address_that_is_optional_is_still_needed() -> None:
    with pytest.raises(Fault, match="is not an address"):
        RequestTemplate("POST", Variable("ACME_URL", optional=True), (), b"").fill({})


def test_what_is_shown_of_a_request_has_no_secrets() -> None:
    request = HttpRequest("POST", "https://e.org/v1?key=sk-1", (("authorization", "Bearer sk-1"),), b"{}")
    assert repr(request) == "HttpRequest(POST https://e.org/v1, 2 bytes)"


def test_a_request_that_is_passed_on_stays_one() -> None:
    call = RequestTemplate("POST", "https://e.org/v1", (), b"{}", is_passed_on=True)
    assert call.fill({}).is_passed_on


@pytest.mark.parametrize(
    "path",
    [
        "x/../../evil", "..", "./x", "x/%2e%2e/y", "x/.%2E/y", "x%2f..%2fy", "x/%252e%252e/y", "x\\..\\y", "x%5cy",
        "x\ny", "x%0d%0ay", "x%00", "x/..;a=b/y", "%25252525252e", "x\x7f",
    ],
)  # fmt: skip
def test_what_could_lead_elsewhere_is_found(path: str) -> None:
    assert can_stray(path)


@pytest.mark.parametrize(
    "path",
    ["gpt-4.1", "llama3:8b", "org/model-v1.5", "...", "a..b", ".hidden", "a%20b", "gemini-2.5-flash@001", "x%3fa=b%23"],
)
def test_names_of_models_stay_where_they_are(path: str) -> None:
    assert not can_stray(path)


def test_a_request_with_another_body_is_the_same_but_for_that() -> None:
    request = HttpRequest("POST", "http://a/b", (("a", "b"),), b"one", is_passed_on=True)
    assert request.with_body(b"two") == HttpRequest("POST", "http://a/b", (("a", "b"),), b"two", is_passed_on=True)
