"""Servers over HTTP behind a company's own certificates and its proxy."""

import asyncio
import base64
import ssl

import pytest
import trustme

from sightline.agent.tools.mcp.config import McpNetwork
from sightline.errors import Fault
from tests.agent.tools.mcp import hostile_http as http
from tests.agent.tools.mcp.stage import text, used, using
from tests.forward_proxy import ForwardProxy

LOGIN = "me:secret"


def test_certificates_that_were_added_are_believed_and_others_are_not() -> None:
    authority = trustme.CA()
    served, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.configure_trust(trusted)

    async def story() -> None:
        async with http.listening(http.Service(), served) as url:
            async with using({"it": {"url": url}}, network=McpNetwork(context=lambda: trusted)) as tools:
                assert text(await used(tools, "it__go")) == "gone"
            with pytest.raises(Fault):
                async with using({"it": {"url": url}}):
                    pass

    asyncio.run(story())


def test_a_proxy_is_gone_through_with_its_password() -> None:
    authority = trustme.CA()
    served, trusted = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("far.example").configure_cert(served)
    authority.configure_trust(trusted)

    async def story() -> None:
        async with http.listening(http.Service(), served) as url, ForwardProxy(login=LOGIN) as proxy:
            port = int(url.rpartition(":")[2].partition("/")[0])
            proxy.reach = ("127.0.0.1", port)
            authorization = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
            network = McpNetwork(lambda: trusted, lambda _url: (f"http://127.0.0.1:{proxy.port}", authorization))
            async with using({"it": {"url": "https://far.example/mcp"}}, network=network) as tools:
                assert text(await used(tools, "it__go")) == "gone"
            assert proxy.asked[0] == "CONNECT far.example:443 HTTP/1.1"

    asyncio.run(story())
