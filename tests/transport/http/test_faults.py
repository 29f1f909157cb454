import errno
import socket
import ssl

import pytest

from sightline.errors import Code, Fault
from sightline.transport.http import faults
from tests.transport.http.asking import kind

PLACE = "api.example.com"


def certificate_error(number: int, words: str = "") -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.verify_code, error.verify_message = number, words
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "dns", "looked up"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "refused", "refuses"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "unreachable", "cannot be reached"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "unreachable", "cannot be reached"),
        (OSError(errno.EMFILE, "Too many open files"), "unreachable", "Too many open files"),
        (OSError(), "unreachable", "gave no reason"),
        (TimeoutError(errno.ETIMEDOUT, "timed out"), "connect_timeout", "within 10 s"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "reset", "broke off"),
        (certificate_error(10), "tls", "has expired"),
        (certificate_error(18), "tls", "self-signed"),
        (certificate_error(20), "tls", "issuer"),
        (certificate_error(62), "tls", "another host"),
        (certificate_error(7, "certificate signature failure"), "tls", "certificate signature failure"),
        (tls_error("WRONG_VERSION_NUMBER"), "tls", "does not speak TLS"),
        (tls_error("TLSV1_ALERT_PROTOCOL_VERSION"), "tls", "1.2"),
        (tls_error("SSLV3_ALERT_HANDSHAKE_FAILURE"), "tls", "handshake failure"),
        (ssl.SSLError(), "tls", "no TLS connection"),
    ],
)
def test_every_failed_connection_has_a_kind_words_and_a_hint(error: OSError, expected: str, words: str) -> None:
    fault = faults.not_connected(error, PLACE, 10)
    assert fault.code is Code.NETWORK
    assert kind(fault) == expected
    assert PLACE in fault.message
    assert words in fault.message
    assert fault.hint.endswith(".")


def test_a_time_limit_that_is_not_ours_has_no_number() -> None:
    assert faults.not_connected(TimeoutError(errno.ETIMEDOUT, ""), PLACE, 0).message.endswith("in time")


def test_an_unknown_issuer_s_hint_names_the_two_ways_out() -> None:
    for number in (18, 19, 20):
        hint = faults.not_connected(certificate_error(number), PLACE, 10).hint
        assert "SSL_CERT_FILE" in hint
        assert "ca_file" in hint


@pytest.mark.parametrize(
    ("fault", "is_worth_it"),
    [
        (faults.not_connected(socket.gaierror(), PLACE, 1), True),
        (faults.not_connected(ConnectionRefusedError(errno.ECONNREFUSED, ""), PLACE, 1), True),
        (faults.not_connected(tls_error("UNEXPECTED_EOF"), PLACE, 1), True),
        (faults.connect_timeout(PLACE, 1), True),
        (faults.no_answer(PLACE, clean=True), True),
        (faults.no_answer(PLACE, clean=False), True),
        (faults.proxy_refused("p:1", "HTTPS_PROXY", 502, PLACE), True),
        (faults.proxy_refused("p:1", "HTTPS_PROXY", 407, PLACE), False),
        (faults.not_connected(certificate_error(18), PLACE, 1), False),
        (faults.not_connected(tls_error("WRONG_VERSION_NUMBER"), PLACE, 1), False),
        (faults.truncation(PLACE), False),
        (faults.silent(PLACE, 1, begun=False), False),
        (faults.silent(PLACE, 1, begun=True), False),
        (faults.protocol_violation(PLACE, "why"), False),
        (faults.too_large(PLACE, 1), False),
        (faults.client_closing(), False),
        (Fault(Code.NETWORK, "from elsewhere"), False),
    ],
)
def test_only_what_failed_before_the_first_byte_and_may_pass_is_tried_again(fault: Fault, is_worth_it: bool) -> None:
    assert faults.may_retry(fault) is is_worth_it
    assert fault.code is not Code.NETWORK or fault.details is None or fault.hint


def test_an_answer_that_began_says_so() -> None:
    assert faults.truncation(PLACE).details == {"kind": "cut", "bytes": True}
    assert faults.silent(PLACE, 3, begun=True).details == {"kind": "idle", "bytes": True}
    assert faults.silent(PLACE, 3, begun=False).details == {"kind": "first_byte", "bytes": False}
