import base64

import pytest

from sightline.catalog.facts import Facts
from sightline.dialects.dialect import TokenRules
from sightline.dialects.registry import dialect
from sightline.model.parts import FileId, Inline, Link, PlainText
from sightline.tokens.message_count import count_media
from sightline.tokens.text_count import TextCounter

TEXTS = TextCounter(Facts(tokenizer="o200k_base"))


def rules_of(name: str) -> TokenRules:
    return dialect(name).tokens


def inline(media_type: str, data: bytes) -> Inline:
    return Inline(media_type, base64.b64encode(data).decode())


def wav(seconds: float, rate: int = 48_000) -> bytes:
    head = b"RIFF" + bytes(4) + b"WAVEfmt " + bytes(12) + rate.to_bytes(4, "little") + bytes(12)
    return head + bytes(int(seconds * rate) - len(head))


def test_a_document_of_text_is_its_text_and_a_frame() -> None:
    text = "one two three four"
    for source in (PlainText(text), inline("text/csv", text.encode())):
        estimate = count_media(source, rules_of("anthropic"), TEXTS)
        assert estimate.low == 4
        assert 4 < estimate.tokens < estimate.high


def test_a_pdf_counts_by_its_pages() -> None:
    file = b"%PDF-1.4 /Type /Pages " + b"<< /Type /Page >> <</Type/Page\n>>" * 2
    estimate = count_media(inline("application/pdf", file), rules_of("gemini"), TEXTS)
    assert (estimate.low, estimate.tokens) == (4 * 250, 4 * 560)
    assert estimate.how == "pages"
    assert count_media(inline("application/pdf", file), rules_of("anthropic"), TEXTS).low == 4 * 1000
    assert count_media(inline("application/pdf", file), rules_of("openai-chat"), TEXTS).low == 0


def test_a_pdf_that_hides_its_pages_is_one_page_at_least() -> None:
    estimate = count_media(inline("application/pdf", b"%PDF" + bytes(100)), rules_of("anthropic"), TEXTS)
    assert (estimate.low, estimate.tokens) == (1000, 2200)
    long = count_media(inline("application/pdf", b"%PDF" + bytes(600_000)), rules_of("anthropic"), TEXTS)
    assert long.tokens == 10 * estimate.tokens
    assert long.high > 10 * long.tokens


def test_sound_counts_by_the_second() -> None:
    estimate = count_media(inline("audio/wav", wav(6)), rules_of("gemini"), TEXTS)
    assert (estimate.low, estimate.tokens) == (150, 192)
    assert count_media(inline("audio/wav", wav(6)), rules_of("openai-chat"), TEXTS).tokens == 60


@pytest.mark.parametrize("data", [b"ID3" + bytes(32_000), wav(1)[:28] + bytes(32_000)])
def test_sound_that_does_not_tell_its_length_has_a_wide_band(data: bytes) -> None:
    estimate = count_media(inline("audio/mp3", data), rules_of("openai-chat"), TEXTS)
    assert estimate.low < estimate.tokens < estimate.high / 4


def test_film_has_a_wider_one() -> None:
    estimate = count_media(inline("video/mp4", bytes(1_000_000)), rules_of("gemini"), TEXTS)
    assert estimate.low < 100 < estimate.tokens < 10_000 < estimate.high


def test_a_file_elsewhere_may_hold_anything() -> None:
    for source in (Link("https://example.com/a.pdf"), FileId("file-1")):
        estimate = count_media(source, rules_of("gemini"), TEXTS)
        assert (estimate.low, estimate.high) == (0, 200_000)


def test_data_that_is_not_base64_is_taken_as_it_stands() -> None:
    assert count_media(Inline("text/plain", "é" * 7), rules_of("gemini"), TEXTS).low > 0
