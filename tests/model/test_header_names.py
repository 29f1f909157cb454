from sightline.model.header_names import (
    CREDENTIAL_HEADERS,
    CREDENTIALS,
    OF_A_BODY,
    OF_A_CONNECTION,
    QUERY_CREDENTIALS,
    TOKEN,
    is_secret_header,
    is_secret_parameter,
)


def test_every_name_is_one_that_can_be_compared() -> None:
    for name in CREDENTIALS | QUERY_CREDENTIALS | OF_A_CONNECTION | OF_A_BODY:
        assert name == name.lower()
        assert TOKEN.fullmatch(name)


def test_what_would_end_a_line_or_a_name_is_no_token() -> None:
    for text in ("", "a b", "a\r\nb", "a:", "ä"):
        assert not TOKEN.fullmatch(text)


def test_every_credential_is_a_secret_in_any_case() -> None:
    assert set(CREDENTIAL_HEADERS) < CREDENTIALS
    for name in CREDENTIALS:
        assert is_secret_header(name.title())
    for name in QUERY_CREDENTIALS:
        assert is_secret_parameter(name.upper())
    assert is_secret_parameter("%6bey")


def test_what_is_called_like_a_secret_is_one() -> None:
    for name in ("authentication", "X-Authentication", "helicone-auth", "x-portkey-api-key", "x-functions-key"):
        assert is_secret_header(name)
    for name in ("auth_token", "authtoken", "client_secret", "jwt", "X-Amz-Signature", "x-amz-credential", "x-api-key"):
        assert is_secret_parameter(name)


def test_names_that_only_sound_like_secrets_are_none() -> None:
    for name in ("idempotency-key", "x-cache-key", "sec-websocket-key", "content-type", "x-session-id"):
        assert not is_secret_header(name)
    for name in ("page_token", "pageToken", "max_tokens", "key_id", "upload_id", "api-version", "alt", "monkey"):
        assert not is_secret_parameter(name)
