"""`sightline local`: the embedded model for other programs."""

import argparse

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `local`, which has only the shared options."""
    command = commands.add_parser(
        "local",
        help="run the embedded model for other programs",
        description="Run the embedded model until it is interrupted. Its address and key are printed for a shell.",
    )
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start it, print its address, and wait."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.engine import make_embedded_model
    from sightline.transport.embedded.process import KEY_VARIABLE, URL_VARIABLE

    async def stay() -> None:
        model = make_embedded_model(loaded)
        try:
            running = await model.running()
            write(f"export {URL_VARIABLE}={running.url}\nexport {KEY_VARIABLE}={running.key}\n".encode())
            say("It speaks the APIs of OpenAI and Anthropic. Ctrl-C ends it.")
            await model.wait_for_end()
        finally:
            await model.close()

    loaded = configuration(arguments.config)
    asyncio.run(stay())
    return 0
