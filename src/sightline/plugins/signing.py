"""The signers that ship with Sightline: AWS Signature Version 4, and Google service accounts.

They work like those of plug-ins, and are selected by their names in `sign` of a provider.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from sightline.errors import Code, Fault
from sightline.plugins.plugin import MakeSigner, SigningContext
from sightline.wire.call import HttpRequest

# --- AWS --------------------------------------------------------------------------------------------

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_AWS_HOST = re.compile(
    r"(?P<service>[a-z0-9-]+)\.(?P<region>[a-z]{2}(?:-[a-z]+)+-\d)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
_SERVICES: Final = {"bedrock-runtime": "bedrock"}
"""Service names in a signature that differ from those in the host. `bedrock-mantle` has the same name in both places:
https://docs.aws.amazon.com/bedrock/latest/userguide/endpoints.html"""

_UNRESERVED: Final = "-_.~"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """The credentials of the signer, with the region and the service."""

    access_key: str
    secret_key: str
    session_token: str
    region: str
    service: str

    def __repr__(self) -> str:
        return f"AwsKey({self.region}/{self.service})"


class AwsSigV4:
    """Signs requests as described in
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.

    Region and service come from `sign_options`, otherwise from the host; the region may also come from AWS_REGION.
    """

    def __init__(self, context: SigningContext) -> None:
        self._context = context

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """The request with its date, session token and signature in headers."""
        return sign_aws(request, self._key(request.url), self._context.now())

    def _key(self, url: str) -> AwsKey:
        context = self._context
        found = _AWS_HOST.fullmatch(urlsplit(url).hostname or "")
        host = found.groupdict() if found else {}
        region = context.options.get("region") or host.get("region") or self._variable("AWS_REGION")
        region = region or self._variable("AWS_DEFAULT_REGION")
        # Hosts with FIPS cryptography (bedrock-runtime-fips.…) belong to the same service.
        service = context.options.get("service") or host.get("service", "").removesuffix("-fips")
        if not region or not service:
            missing = "service" if region else "region"
            hint = f'Write sign_options = {{ {missing} = "…" }} in [providers.{context.provider}].'
            raise Fault(Code.CONFIG, f"the {missing} for the signature is not known", hint=hint)
        access, secret = self._variable("AWS_ACCESS_KEY_ID"), self._variable("AWS_SECRET_ACCESS_KEY")
        if not access or not secret:
            name = "AWS_SECRET_ACCESS_KEY" if access else "AWS_ACCESS_KEY_ID"
            hint = f"Set {name} in the environment: `aws configure export-credentials --format env` prints both."
            raise Fault(Code.AUTH, f"the variable {name} is not set", hint=hint)
        return AwsKey(access, secret, self._variable("AWS_SESSION_TOKEN"), region, _SERVICES.get(service, service))

    def _variable(self, name: str) -> str:
        return self._context.environment.get(name, "").strip()


def sign_aws(request: HttpRequest, key: AwsKey, now: float) -> HttpRequest:
    """Sign the request at this time. The signature covers the host, the content type and the headers that AWS itself
    reads."""
    at = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    parts = urlsplit(request.url)
    headers = _without(request.headers, ("authorization", "x-amz-date", "x-amz-security-token"))
    headers.append(("x-amz-date", at))
    if key.session_token:
        headers.append(("x-amz-security-token", key.session_token))
    signed = {"host": _host(request)} | {
        name.lower(): " ".join(value.split())
        for name, value in headers
        if name.lower() == "content-type" or name.lower().startswith("x-amz-")
    }
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            request.method,
            # The path as it is sent, encoded once more; only S3 takes it without the second encoding.
            quote(parts.path or "/", safe=f"/{_UNRESERVED}"),
            _canonical_query(parts.query),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    scope = f"{at[:8]}/{key.region}/{key.service}/aws4_request"
    to_sign = f"{_ALGORITHM}\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    derived = f"AWS4{key.secret_key}".encode()
    for step in (*scope.split("/"), to_sign):
        derived = hmac.digest(derived, step.encode(), "sha256")
    credential = f"Credential={key.access_key}/{scope}, SignedHeaders={names}, Signature={derived.hex()}"
    headers.append(("authorization", f"{_ALGORITHM} {credential}"))
    return msgspec.structs.replace(request, headers=tuple(headers))


def _canonical_query(query: str) -> str:
    """The parameters, encoded again and sorted by their bytes."""
    pairs = (piece.partition("=") for piece in query.split("&") if piece)
    encoded = (
        (quote(unquote(name), safe=_UNRESERVED), quote(unquote(value), safe=_UNRESERVED)) for name, _, value in pairs
    )
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def _host(request: HttpRequest) -> str:
    """The Host header that is sent, without the port if it is the default."""
    given = next((value for name, value in request.headers if name.lower() == "host"), "")
    parts = urlsplit(request.url)
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    name = parts.hostname or ""
    name = f"[{name}]" if ":" in name else name
    return given or (name if parts.port in (None, usual) else f"{name}:{parts.port}")


def _without(headers: Iterable[tuple[str, str]], names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in names]


# --- Google -----------------------------------------------------------------------------------------

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFETIME_S: Final = 3600
_REFRESH_BEFORE_S: Final = 300
"""How many seconds before its expiry a token is replaced, so that it does not expire while a request is in transit."""

_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"


class ServiceAccount(msgspec.Struct, frozen=True):
    """The needed fields of the file that Google provides for a service account."""

    client_email: str
    private_key: str
    token_uri: str = "https://oauth2.googleapis.com/token"
    private_key_id: str = ""

    def __repr__(self) -> str:
        return f"ServiceAccount({self.client_email})"


class _Token(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float = _LIFETIME_S


class GoogleServiceAccount:
    """Exchanges an assertion signed with the account's key for a token, and sends the token until it is about to
    expire: https://developers.google.com/identity/protocols/oauth2/service-account#httprest.

    The file is named by `sign_options.file`, otherwise by GOOGLE_APPLICATION_CREDENTIALS.
    """

    def __init__(self, context: SigningContext) -> None:
        self._context = context
        self._token = ""
        self._ends = 0.0
        self._fetching = asyncio.Lock()
        """Requests that arrive while a token is being fetched wait for it, instead of each fetching one."""

    async def sign(self, request: HttpRequest) -> HttpRequest:
        """The request with a token in its header."""
        async with self._fetching:
            if self._context.now() >= self._ends - _REFRESH_BEFORE_S:
                await self._fetch()
        headers = _without(request.headers, ("authorization",))
        return msgspec.structs.replace(request, headers=(*headers, ("authorization", f"Bearer {self._token}")))

    async def _fetch(self) -> None:
        account, now = self._account(), self._context.now()
        assertion = sign_assertion(account, self._context.options.get("scope", _SCOPE), int(now))
        form = urlencode({"grant_type": _GRANT, "assertion": assertion}).encode()
        headers = (("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json"))
        status, body = await self._context.fetch(HttpRequest("POST", account.token_uri, headers, form))
        try:
            token = msgspec.json.decode(body, type=_Token) if status == 200 else None
        except msgspec.DecodeError:
            token = None
        if token is None:
            hint = (
                "Check that the key of the service account is not deleted, and that the clock of this machine is right."
            )
            code = Code.AUTH if 400 <= status < 500 else Code.UPSTREAM_ERROR
            raise Fault(code, f"{account.token_uri} gave no token ({status}): {_reason(body)}", hint=hint)
        self._token, self._ends = token.access_token, now + token.expires_in

    def _account(self) -> ServiceAccount:
        name = self._context.options.get("file") or self._context.environment.get(_FILE, "").strip()
        hint = "It is the JSON file that Google gives out with a new key of a service account."
        if not name:
            raise Fault(Code.AUTH, f"the variable {_FILE} is not set", hint=f"Set it to the path of a file. {hint}")
        try:
            return msgspec.json.decode(Path(name).expanduser().read_bytes(), type=ServiceAccount)
        except OSError as error:
            raise Fault(Code.AUTH, f"{name}: {error.strerror}", hint=hint) from None
        except msgspec.DecodeError:  # its message could quote the key
            raise Fault(Code.AUTH, f"{name} does not contain the key of a service account", hint=hint) from None


def sign_assertion(account: ServiceAccount, scope: str, now: int) -> str:
    """The assertion with which a token is requested, as a JWT."""
    header = {"alg": "RS256", "typ": "JWT"} | ({"kid": account.private_key_id} if account.private_key_id else {})
    claims = {
        "iss": account.client_email,
        "scope": scope,
        "aud": account.token_uri,
        "iat": now,
        "exp": now + _LIFETIME_S,
    }
    signed = f"{_segment(header)}.{_segment(claims)}"
    return f"{signed}.{_url_base64(sign_rs256(signed.encode(), account.private_key))}"


def sign_rs256(data: bytes, private_key: str) -> bytes:
    """The RS256 signature of these bytes (RFC 7518, 3.3) by a private key in PEM."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(private_key.encode(), None)
    except ValueError:
        key = None
    if not isinstance(key, RSAPrivateKey):
        hint = "Take the file as Google gives it out."
        raise Fault(Code.AUTH, "the private_key of the service account is not an RSA key in PEM", hint=hint)
    return key.sign(data, PKCS1v15(), SHA256())


def _segment(value: Mapping[str, object]) -> str:
    return _url_base64(json.dumps(value, separators=(",", ":")).encode())


def _url_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _reason(body: bytes) -> str:
    """What Google reports, as far as it is safe to repeat: the name of the error and its description."""
    try:
        document = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.DecodeError:
        return "no JSON"
    return " ".join(str(document[name]) for name in ("error", "error_description") if name in document)[:300]


BUILT_IN: Final[Mapping[str, MakeSigner]] = {"aws-sigv4": AwsSigV4, "google-service-account": GoogleServiceAccount}
"""The signers that need no plug-in."""
