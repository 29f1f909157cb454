"""A gateway inside an application of your own: clients use http://127.0.0.1:8000/llm/v1 as their base URL.

Run it as `uvicorn gateway_app:app` in this folder. It needs Starlette and uvicorn; others that speak ASGI do as well.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import sightline

gateway = sightline.GatewayApp()


@asynccontextmanager
async def lifespan(_app: Starlette) -> AsyncIterator[None]:
    """Frameworks do not start what is mounted: open the gateway here."""
    async with gateway:
        yield


async def home(_request: Request) -> PlainTextResponse:
    """A page of your own application."""
    return PlainTextResponse("This is my application.")


app = Starlette(lifespan=lifespan, routes=[Route("/", home), Mount("/llm", gateway)])
