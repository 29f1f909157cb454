from sightline.model.header_names import CREDENTIALS, OF_A_BODY, OF_A_CONNECTION, QUERY_CREDENTIALS, TOKEN


def test_every_name_is_one_that_can_be_compared() -> None:
    for name in CREDENTIALS | QUERY_CREDENTIALS | OF_A_CONNECTION | OF_A_BODY:
        assert name == name.lower()
        assert TOKEN.fullmatch(name)


def test_what_would_end_a_line_or_a_name_is_no_token() -> None:
    for text in ("", "a b", "a\r\nb", "a:", "ä"):
        assert not TOKEN.fullmatch(text)
