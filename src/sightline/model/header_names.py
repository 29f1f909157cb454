"""Headers and query parameters that mean something to more than one part of the program, by their lower-case names."""

import re

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What the name of a header, or a method, may consist of."""

CREDENTIALS = frozenset(
    {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token", "x-goog-api-key"}
)
"""Headers whose value shows who is asking."""

QUERY_CREDENTIALS = frozenset({"access_token", "api-key", "api_key", "apikey", "key", "subscription-key"})
"""Query parameters that do the same."""

OF_A_CONNECTION = frozenset(
    {
        "connection", "expect", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers that speak about one connection, which only the one who makes it can decide about."""

OF_A_BODY = frozenset({"content-encoding", "content-length", "host"})
"""Headers that whoever sends a body sets by what it sends, and to whom."""
