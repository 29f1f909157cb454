import pytest

from sightline.wire.call import can_stray


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
