"""Ask a model, print the answer as it comes, and then what is on record of it.

Run it as `python examples/ask.py [QUESTION]`. It asks the model that `[ask] model` in sightline.toml names,
else that of the first provider whose key is in the environment, else the embedded one.
"""

import sys

import sightline
from sightline.model.events import StreamEvent, TextReceived


def show(event: StreamEvent) -> None:
    """Print the text of an event."""
    if isinstance(event, TextReceived):
        print(event.text, end="", flush=True)


def main() -> None:
    """Ask once."""
    result = sightline.run(" ".join(sys.argv[1:]) or "Say hello.", heard=show)
    print()
    (exchange,) = sightline.find_exchanges(limit=1)
    cost = "unknown" if result.cost is None else f"${result.cost:.6f}"
    print(f"{exchange.id}: {exchange.model}, {exchange.input_tokens} tokens in, cost {cost}", file=sys.stderr)


if __name__ == "__main__":
    main()
