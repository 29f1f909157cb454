import base64
import errno
import socket
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import Code, Fault
from sightline.transport.http import faults
from sightline.transport.http.target import Origin, Proxies, Proxy, target
from tests.transport.http.asking import kind


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://api.example.com/v1/chat?x=1#part", Origin("https", "api.example.com", 443), "/v1/chat?x=1"),
        ("http://127.0.0.1:9000", Origin("http", "127.0.0.1", 9000), "/"),
        ("http://[::1]:8080/a", Origin("http", "::1", 8080), "/a"),
        ("HTTPS://API.Example.com", Origin("https", "api.example.com", 443), "/"),
        ("https://bücher.example/", Origin("https", "xn--bcher-kva.example", 443), "/"),
    ],
)
def test_a_url_is_taken_apart(url: str, origin: Origin, path: str) -> None:
    aim = target(url)
    assert (aim.origin, aim.path) == (origin, path)


def test_an_origin_is_named_as_the_host_header_names_it() -> None:
    assert Origin("https", "a.example", 443).place == "a.example"
    assert Origin("http", "a.example", 443).place == "a.example:443"
    assert Origin("http", "::1", 80).place == "[::1]"
    assert Origin("https", "a.example", 443).authority == "a.example:443"


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("localhost.", True),
        ("x.localhost", True),
        ("x.localhost.", True),
        ("127.8.8.8", True),
        ("127.1", True),
        ("0x7f.1", True),
        ("2130706433", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:7f00:1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("10.1", False),
        ("127.example", False),
        ("notlocalhost", False),
        ("localhost.example", False),
        ("a", False),
        ("", False),
    ],
)
def test_it_knows_this_machine(host: str, is_loopback: bool) -> None:
    assert Origin("http", host, 80).is_loopback is is_loopback


@pytest.mark.parametrize(
    "url",
    [
        "api.example.com/v1",
        "ftp://a.example/",
        "https://",
        "https://a.example:port/",
        "https://a.example:99999/",
        "https://a.example:0/",
        "https://[::1/",
        "https://[fe80::1%eth0]/",
        "https://[v1.x]/",
        "https://a b.example/",
        "https://a.example/with space",
        "https://a.example/line\r\nX-Injected: 1",
        "https://a.example/line\n",
        "https://a.example/ü",
        "https://a..example/",
        "https://user:secret@a.example/",
        "https://a.example?x=1 y",
    ],
)
def test_a_url_that_cannot_be_sent_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(Fault) as caught:
        target(url)
    assert caught.value.code is Code.INVALID_REQUEST
    assert caught.value.hint
    assert "secret" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_target_or_a_fault(text: str) -> None:
    for url in (text, f"https://{text}", f"https://a.example/{text}"):
        try:
            aim = target(url)
        except Fault:
            continue
        assert aim.path.isascii()
        assert aim.path.startswith("/")
        assert not set(aim.path + aim.origin.host) & set("\r\n\t \0")


def test_its_repr_has_no_query() -> None:
    assert "secret" not in repr(target("https://a.example/v1?key=secret"))


API = Origin("https", "api.example.com", 443)
PROXY = "http://proxy.example:3128"


def chosen(environment: dict[str, str], origin: Origin = API) -> Proxy | None:
    return Proxies.of(environment).for_origin(origin)


def test_without_variables_there_is_no_proxy() -> None:
    assert chosen({}) is None


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
def test_the_variables_of_other_programs_name_it(name: str) -> None:
    assert chosen({name: PROXY}) == Proxy("http", "proxy.example", 3128, name)


def test_each_scheme_has_its_own() -> None:
    environment = {"HTTP_PROXY": "http://one:1", "HTTPS_PROXY": "https://two"}
    assert chosen(environment) == Proxy("https", "two", 443, "HTTPS_PROXY")
    assert chosen(environment, Origin("http", "a.example", 80)) == Proxy("http", "one", 1, "HTTP_PROXY")


def test_lower_case_wins_even_when_it_is_empty() -> None:
    assert chosen({"https_proxy": PROXY, "HTTPS_PROXY": "http://other:1"}) == Proxy(
        "http", "proxy.example", 3128, "https_proxy"
    )
    assert chosen({"https_proxy": "", "HTTPS_PROXY": PROXY}) is None


def test_http_proxy_is_ignored_in_a_cgi_environment() -> None:
    environment = {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}
    assert chosen(environment, Origin("http", "a.example", 80)) is None
    assert chosen({**environment, "http_proxy": PROXY}, Origin("http", "a.example", 80)) is not None


def test_a_scheme_may_be_left_out() -> None:
    assert chosen({"HTTPS_PROXY": "proxy.example:3128"}) == Proxy("http", "proxy.example", 3128, "HTTPS_PROXY")
    assert chosen({"HTTPS_PROXY": "proxy.example"}) == Proxy("http", "proxy.example", 80, "HTTPS_PROXY")


def test_a_password_becomes_a_header_and_is_not_shown() -> None:
    proxy = chosen({"HTTPS_PROXY": "http://me:p%40ss@proxy.example:3128"})
    assert proxy.authorization == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert "p@ss" not in repr(proxy)
    assert proxy.authorization not in repr(proxy)
    assert "p%40ss" not in repr(Proxies.of({"HTTPS_PROXY": "http://me:p%40ss@proxy.example:3128"}))


def test_a_name_without_a_password_is_sent_too() -> None:
    authorization = chosen({"HTTPS_PROXY": "http://me@proxy.example"}).authorization
    assert authorization == "Basic " + base64.b64encode(b"me:").decode()


def test_its_host_is_written_as_messages_and_name_servers_have_it() -> None:
    assert chosen({"HTTPS_PROXY": "http://[fd00::1]:3128"}).place == "[fd00::1]:3128"
    assert chosen({"HTTPS_PROXY": "http://me:a%5Bb@bücher.example:3128"}).host == "xn--bcher-kva.example"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "127.0.0.1", "127.1", "::1", "::ffff:127.0.0.1", "sub.localhost"]
)
def test_this_machine_is_reached_directly(host: str) -> None:
    assert chosen({"HTTPS_PROXY": PROXY, "HTTP_PROXY": "not read :"}, Origin("https", host, 443)) is None


@pytest.mark.parametrize(
    ("no_proxy", "host", "is_direct"),
    [
        ("*", "api.example.com", True),
        ("example.com", "api.example.com", True),
        (".example.com", "api.example.com", True),
        ("*.example.com", "api.example.com", True),
        ("EXAMPLE.com", "api.example.com", True),
        ("ample.com", "api.example.com", False),
        ("api.example.com:443", "api.example.com", True),
        ("api.example.com:8443", "api.example.com", False),
        ("other.org, example.com", "api.example.com", True),
        ("other.org example.com", "api.example.com", True),
        ("example.com.", "api.example.com", True),
        ("example.com.", "example.com", True),
        (".example.com.:443", "api.example.com", True),
        ("example.com", "api.example.com.", True),
        ("ample.com.", "api.example.com", False),
        (".", "api.example.com", False),
        (".", "api.example.com.", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "api.example.com", False),
        ("10.0.0.0/99", "10.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:80", "10.1.2.3", False),
        ("0.0.3", "10.0.0.3", False),
        ("fd00::/8", "fd00::1", True),
        ("fd00::1", "fd00::1", True),
        ("[fd00::1]", "fd00::1", True),
        ("[fd00::1]:443", "fd00::1", True),
        ("[fd00::1]:80", "fd00::1", False),
    ],
)
def test_no_proxy_names_what_is_reached_directly(no_proxy: str, host: str, is_direct: bool) -> None:
    proxy = chosen({"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}, Origin("https", host, 443))
    assert (proxy is None) is is_direct


@pytest.mark.parametrize(
    "url",
    [
        "ftp://secret",
        "http://",
        "http://a:port",
        "http://a:0",
        "http://a:99999",
        "http://[secret",
        "://secret",
        "http://secret..b:3128",
        f"http://{'secret' * 11}.example:3128",
        "http://sec ret:1",
        "http://%00:1",
        "http://[v1.secret]:1",
        "http://[fe80::1%eth0]:1",
        "http://me:secret@a..b:3128",
    ],
)
def test_invalid_proxy_url_is_reported_when_it_is_needed(url: str) -> None:
    proxies = Proxies.of({"HTTPS_PROXY": url})
    with pytest.raises(Fault) as caught:
        proxies.for_origin(API)
    assert caught.value.code is Code.CONFIG
    assert "HTTPS_PROXY" in caught.value.message
    assert "secret" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks4", "socks"])
def test_socks_is_not_supported_and_says_so(scheme: str) -> None:
    with pytest.raises(Fault) as caught:
        chosen({"ALL_PROXY": f"{scheme}://proxy.example:1080"})
    assert caught.value.code is Code.CONFIG
    assert caught.value.message == "ALL_PROXY names a SOCKS proxy, which is not supported"


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
