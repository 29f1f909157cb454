"""`sightline local`: the embedded model for other programs, for as long as it is wanted."""

import argparse

from sightline.cli.options import add_shared
from sightline.cli.terminal import say, write


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`local`, which takes nothing but the shared options."""
    command = commands.add_parser(
        "local",
        help="run the embedded model for other programs",
        description="Run the embedded model until it is interrupted. Its address and key are printed for a shell.",
    )
    add_shared(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start it, say where it is, and wait."""
    import asyncio

    from sightline.app.configuration import configuration
    from sightline.app.parts import make_embedded_model
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
