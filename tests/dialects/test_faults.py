import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.dialects.faults import HINTS, STATUS, provider_fault, status_of
from sightline.dialects.registry import NAMES, dialect
from sightline.errors import LABELS, UNSTATED, Code, Fault, Numbers

OVERFLOW = "prompt is too long: 210000 tokens > 200000 maximum"
KEYS = [
    *("error", "message", "detail", "type", "code", "status", "status_code", "details", "@type", "reason"),
    *("metadata", "raw", "error_type", "msg", "loc", "violations", "quotaId", "quota_limit", "retryDelay"),
    *("retry_after", "n_ctx", "n_prompt_tokens"),
]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


def test_every_code_has_a_status_and_a_hint() -> None:
    assert set(STATUS) == set(HINTS) == set(Code)
    assert all(hint.endswith(".") for hint in HINTS.values())


def test_a_providers_error_becomes_a_fault_with_all_that_it_says() -> None:
    fault = provider_fault(
        400,
        OVERFLOW,
        words=(None, 5, "invalid_request_error"),
        details={"type": "invalid_request_error"},
        headers={"retry-after": "3"},
    )
    assert fault == Fault(
        Code.CONTEXT_OVERFLOW,
        OVERFLOW,
        hint=HINTS[Code.CONTEXT_OVERFLOW],
        status=400,
        retry_after=3.0,
        details={"type": "invalid_request_error"},
        numbers=Numbers(200_000, 210_000, 10_000),
    )
    assert fault.label == LABELS[Code.CONTEXT_OVERFLOW] == "quota"


def test_figures_are_given_only_where_they_count_a_whole_requests_tokens() -> None:
    words = "Limit 30000, Requested 10955 tokens per min"
    assert provider_fault(429, words).numbers == Numbers(30_000, 10_955)
    assert provider_fault(500, words).numbers == UNSTATED


def test_what_is_not_found_is_so_without_a_status_too() -> None:
    assert status_of(provider_fault(0, "no such page", words=("not_found_error",))) == 404


def test_an_error_without_words_still_says_something() -> None:
    assert provider_fault(500, "").message == "the provider answered with status 500 and no message"


def test_a_missing_page_points_at_the_address_and_a_missing_model_at_its_name() -> None:
    assert "base_url" in provider_fault(404, "Not Found").hint
    assert "base_url" in provider_fault(405, "Method Not Allowed").hint
    assert provider_fault(404, "The model `x` does not exist").hint == HINTS[Code.MODEL_UNKNOWN]


def test_a_web_page_is_shown_by_its_title_and_is_kept_whole() -> None:
    page = "<html><head><title>\n Attention\n Required! </title></head>blocked</html>"
    fault = provider_fault(403, page, details=page)
    assert fault.message == "Attention Required! (a web page)"
    assert fault.details == page
    assert "web page" in fault.hint
    assert provider_fault(502, page).hint == HINTS[Code.UPSTREAM_ERROR]
    assert provider_fault(403, "<html>no</html>").message == "<html>no</html>"


def test_a_book_of_an_error_is_read_at_its_beginning() -> None:
    text = f"{'x' * 30_000} {OVERFLOW}"
    fault = provider_fault(400, text)
    assert (fault.code, fault.message) == (Code.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(Code.AUTH, "no"), 401),
        (Fault(Code.AUTH, "no", status=403), 403),
        (Fault(Code.UPSTREAM_ERROR, "no", status=200), 502),
        (Fault(Code.CONTEXT_OVERFLOW, "no", status=413), 400),
        (Fault(Code.CONFIG, "no"), 400),
        (Fault(Code.LOCAL_UNAVAILABLE, "no"), 503),
    ],
)
def test_the_status_is_the_providers_own_where_it_told_one(fault: Fault, status: int) -> None:
    assert status_of(fault) == status


@pytest.mark.parametrize("name", NAMES)
@given(status=st.integers(100, 599), body=ANY_JSON, wait=st.text(max_size=20))
def test_any_status_and_any_body_are_a_fault(name: str, status: int, body: object, wait: str) -> None:
    fault = dialect(name).read_error(status, body, {"retry-after": wait})  # type: ignore[arg-type]
    assert isinstance(fault, Fault)
    assert fault.message
    assert fault.hint
    told, written = dialect(name).write_error(fault)
    assert told >= 400
    assert isinstance(dialect(name).read_error(told, written, {}), Fault)
