import base64

import pytest

from sightline.errors import Code, Fault
from sightline.transport.http.proxies import Proxies, Proxy
from sightline.transport.http.target import Origin

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


def test_a_web_server_s_http_proxy_is_somebody_s_header() -> None:
    environment = {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}
    assert chosen(environment, Origin("http", "a.example", 80)) is None
    assert chosen({**environment, "http_proxy": PROXY}, Origin("http", "a.example", 80)) is not None


def test_a_scheme_may_be_left_out() -> None:
    assert chosen({"HTTPS_PROXY": "proxy.example:3128"}) == Proxy("http", "proxy.example", 3128, "HTTPS_PROXY")
    assert chosen({"HTTPS_PROXY": "proxy.example"}) == Proxy("http", "proxy.example", 80, "HTTPS_PROXY")


def test_a_password_becomes_a_header_and_is_not_shown() -> None:
    proxy = chosen({"HTTPS_PROXY": "http://me:p%40ss@proxy.example:3128"})
    assert proxy is not None
    assert proxy.authorization == "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert "p@ss" not in repr(proxy)
    assert proxy.authorization not in repr(proxy)
    assert "p%40ss" not in repr(Proxies.of({"HTTPS_PROXY": "http://me:p%40ss@proxy.example:3128"}))


def test_a_name_without_a_password_is_sent_too() -> None:
    proxy = chosen({"HTTPS_PROXY": "http://me@proxy.example"})
    assert proxy is not None
    assert proxy.authorization == "Basic " + base64.b64encode(b"me:").decode()


def test_an_ipv6_proxy_is_named_in_brackets() -> None:
    proxy = chosen({"HTTPS_PROXY": "http://[fd00::1]:3128"})
    assert proxy is not None
    assert proxy.place == "[fd00::1]:3128"


def test_its_host_is_written_as_a_name_server_knows_it() -> None:
    proxy = chosen({"HTTPS_PROXY": "http://me:a%5Bb@bücher.example:3128"})
    assert proxy is not None
    assert proxy.host == "xn--bcher-kva.example"


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
def test_a_url_that_is_none_is_told_when_it_is_needed(url: str) -> None:
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
