"""Headers and query parameters that matter to more than one part of the program, by their lower-case names."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header, or a method."""

CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "x-auth-token")
"""Headers in which a client authenticates to a provider, in the order in which they are checked."""

CREDENTIALS = frozenset({*CREDENTIAL_HEADERS, "cookie", "proxy-authorization"})
"""Headers whose value authenticates the sender, to a provider or to anything else."""

QUERY_CREDENTIALS = frozenset(
    {
        *CREDENTIAL_HEADERS, "access_token", "api_key", "apikey", "auth", "key", "password", "secret", "sig",
        "signature", "subscription-key", "token",
    }
)  # fmt: skip
"""Query parameters that authenticate the sender."""

TAG_HEADER = "x-sightline-tag"
"""A header with which a client tags a request for cost reports; it is not passed on."""
_LONGEST_TAG = 100


def tag_of(session: str, headers: Iterable[tuple[str, str]]) -> str:
    """The tag of a request: the value of its tag header, otherwise what follows the `#` in its session label."""
    said = next((value for name, value in headers if name.lower() == TAG_HEADER), "")
    return (said.strip() or session.rpartition("#")[2] if said or "#" in session else "")[:_LONGEST_TAG]


_SECRET_NAME = re.compile(
    r"(?:^|[-_])(?:api-?key|auth|authentication|authorization|bearer|cookie2?|credentials?|jwt|passwd|password|secret|"
    r"(?:access|auth|id|refresh|security|session|user)?-?token)(?:$|[-_])"
    r"|(?<!idempotency)(?<!cache)(?<!sec-websocket)-key$",
    re.IGNORECASE,
)

# Narrower than for headers: `page_token` and `key_id` are parameters of lists, not credentials.
_SECRET_PARAMETER = re.compile(
    r"(?:^|[-_.$])(?:api[-_]?key|(?:access|auth|bearer|id|refresh|security|session)[-_]?token|client[-_]?secret|"
    r"(?:functions|secret|subscription)[-_]key|credentials?|jwt|passwd|password|secret|signature)$",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def is_secret_header(name: str) -> bool:
    """Whether the value of this header is a secret: the known headers, and those whose name looks like one."""
    return name.lower() in CREDENTIALS or _SECRET_NAME.search(name) is not None


def is_secret_parameter(name: str) -> bool:
    """Whether the value of this query parameter is a secret. The name may be percent-encoded."""
    known = unquote(name).lower()
    return known in QUERY_CREDENTIALS or _SECRET_PARAMETER.search(known) is not None


OF_A_CONNECTION = frozenset(
    {
        "connection", "expect", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Hop-by-hop headers, which apply to one connection and are set only by the side that makes it."""

OF_A_BODY = frozenset({"content-encoding", "content-length", "host"})
"""Headers that the sender sets from the body and the address."""
