import pytest

from sightline.catalog.catalog import Detection
from sightline.catalog.provider import Provider

AZURE = Detection(names=("azure",), url_contains=("openai.azure.", "azure-api."), not_url_contains=("azurewebsites",))


@pytest.mark.parametrize(
    ("name", "title", "url", "fits"),
    [
        ("azure", "", "https://anything.example", True),
        ("mine", "Azure", "https://anything.example", True),
        ("mine", "", "https://x.OpenAI.azure.com/openai/v1", True),
        ("mine", "", "https://x.azure-api.azurewebsites.net", False),
        ("mine", "", "https://api.openai.com/v1", False),
        ("azures", "", "https://api.openai.com/v1", False),
    ],
)
def test_a_provider_is_recognised_by_name_title_or_address(name: str, title: str, url: str, *, fits: bool) -> None:
    assert AZURE.fits(name, Provider(title=title, base_url=url)) is fits


def test_a_detection_without_marks_fits_nothing() -> None:
    assert not Detection().fits("", Provider(title="x"))
