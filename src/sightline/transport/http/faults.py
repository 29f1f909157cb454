"""The messages of network failures: one fault for each way in which a connection can fail."""

import errno
import socket
import ssl
from collections.abc import Mapping
from typing import Literal

from sightline.errors import Code, Fault

Kind = Literal["dns", "refused", "unreachable", "tls", "proxy", "connect_timeout", "reset", "eof", "cut"]

_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL})
_ONLINE = "Check that this machine is online"
_CA = (
    "If you trust it (a company's proxy, a server of your own), name its CA file in SSL_CERT_FILE or in ca_file under "
    "[network] in the configuration."
)
# OpenSSL's codes for problems with a certificate: the message and the hint.
_CERTIFICATES: Mapping[int, tuple[str, str]] = {
    9: ("is not valid yet", "Check this machine's clock."),
    10: ("has expired", "Check this machine's clock; if it is right, the server must renew its certificate."),
    18: ("is self-signed", _CA),
    19: ("comes from a root that is not trusted here", _CA),
    20: ("comes from an issuer that is not trusted here", _CA),
    21: ("cannot be verified", _CA),
    23: ("was revoked", "Do not send anything there; ask the operator of the server."),
    62: ("is for another host", "Check the host in the provider's base_url."),
    64: ("is for another address", "Use the host name in the provider's base_url, not the address."),
}


def may_retry(fault: Fault) -> bool:
    """Whether a failure happened before the first byte of a response, and may not happen again if the request is
    resent."""
    details = fault.details
    if fault.code is not Code.NETWORK or not isinstance(details, dict):
        return False
    return details.get("kind") != "cut" and not details.get("lasting", False)


def network(kind: Kind, message: str, hint: str, **more: bool) -> Fault:
    return Fault(Code.NETWORK, message, hint=hint, details={"kind": kind, **more})


def no_answer(place: str, *, clean: bool) -> Fault:
    """The connection ended before the first byte of the response."""
    if clean:
        return network("eof", f"{place} closed the connection without an answer", "Try again.")
    return network("reset", f"the connection to {place} was reset before an answer came", "Try again.")


def truncation(place: str) -> Fault:
    return network(
        "cut",
        f"the connection to {place} was lost in the middle of the answer",
        "Send the request again; what arrived of the answer is not complete.",
        bytes=True,
    )


def silent(place: str, seconds: float, *, begun: bool) -> Fault:
    if begun:
        message, kind = f"{place} fell silent in the middle of the answer, for {seconds:g} s", "idle"
        setting = "stream_idle_timeout_ms"
    else:
        message, kind = f"{place} did not begin to answer within {seconds:g} s", "first_byte"
        setting = "first_byte_timeout_ms"
    hint = f"Try again, or allow more time with {setting} of the provider."
    return Fault(Code.TIMEOUT_IDLE, message, hint=hint, details={"kind": kind, "bytes": begun})


def protocol_violation(place: str, why: str) -> Fault:
    """What arrived is not HTTP as we accept it."""
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the answer of {place} is no valid HTTP/1.1: {why}",
        hint="Check that the provider's base_url leads to its API, and through no server that changes answers.",
        details={"kind": "malformed", "bytes": True},
    )


def too_large(place: str, limit: int) -> Fault:
    return Fault(
        Code.UPSTREAM_PROTOCOL,
        f"the answer of {place} is larger than {limit} bytes",
        hint="Check that the provider's base_url leads to its API.",
        details={"kind": "too_large", "bytes": True},
    )


def client_closing() -> Fault:
    """The client is no longer in use."""
    return Fault(Code.CANCELLED, "the HTTP client was closed", hint="Start Sightline again.")


def connect_timeout(place: str, seconds: float) -> Fault:
    # The system has its own limit if we set none.
    within = f"within {seconds:g} s" if seconds else "in time"
    message = f"no connection to {place} {within}"
    return network("connect_timeout", message, f"{_ONLINE} and that nothing blocks the way; HTTPS_PROXY names a proxy.")


def proxy_refused(place: str, variable: str, status: int, target: str) -> Fault:
    """The proxy does not let the request through."""
    if status == 407:
        message = f"the proxy {place} requires a user name and password"
        return network("proxy", message, f"Set {variable} to http://user:password@{place}.", lasting=True)
    outcome = f"answered {status}" if status else "gave no valid answer"
    return network(
        "proxy",
        f"the proxy {place} {outcome} when asked for {target}",
        f"Check {variable}; NO_PROXY names hosts to reach directly.",
    )


def not_connected(error: OSError, place: str, seconds: float) -> Fault:
    match error:
        case socket.gaierror():
            hint = f"{_ONLINE} and that the host is spelled right."
            return network("dns", f"the name of {place} could not be looked up", hint)
        case ssl.SSLCertVerificationError():
            return _certificate_fault(error, place)
        case ssl.SSLError():
            return _no_tls(error, place)
        case TimeoutError():
            return connect_timeout(place, seconds)
        case _:
            return _by_number(error, place)


def _by_number(error: OSError, place: str) -> Fault:
    if error.errno == errno.ECONNREFUSED:
        hint = "Check that it is running there and that host and port are right."
        return network("refused", f"{place} refuses connections", hint)
    if error.errno in _UNREACHABLE:
        return network("unreachable", f"{place} cannot be reached", f"{_ONLINE} and that the address is right.")
    if isinstance(error, ConnectionError):
        return network("reset", f"{place} broke off while the connection was made", "Try again.")
    why = error.strerror or "the system gave no reason"
    return network("unreachable", f"no connection to {place}: {why}", f"{_ONLINE} and that the address is right.")


def _certificate_fault(error: ssl.SSLCertVerificationError, place: str) -> Fault:
    why, hint = _CERTIFICATES.get(error.verify_code, (f"was not accepted ({error.verify_message})", _CA))
    return network("tls", f"the certificate of {place} {why}", hint, lasting=True)


def _no_tls(error: ssl.SSLError, place: str) -> Fault:
    # An error that did not come from OpenSSL has no reason, not even an empty one.
    reason = (getattr(error, "reason", None) or "").replace("_", " ").lower()
    if "wrong version number" in reason or "http request" in reason:
        return network(
            "tls", f"{place} does not speak TLS", "Check whether its URL should begin with http://.", lasting=True
        )
    if "protocol version" in reason or "unsupported protocol" in reason:
        return network("tls", f"{place} speaks no TLS version from 1.2 on", "Ask its operator.", lasting=True)
    detail = f": {reason}" if reason else ""
    return network(
        "tls", f"no TLS connection to {place}{detail}", "Try again; check the proxy and the clock if it stays."
    )
