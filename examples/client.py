"""A client as any other: it speaks the chat API at the address that its environment names, and prints the answer."""

import json
import os
import urllib.error
import urllib.request

BASE = os.environ["OPENAI_BASE_URL"]
KEY = os.environ.get("OPENAI_API_KEY", "none")
QUESTION = {"model": "local", "max_tokens": 24, "messages": [{"role": "user", "content": "Say hello."}]}


def main() -> None:
    """Ask once."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{BASE}/chat/completions", json.dumps(QUESTION).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            print(json.load(response)["choices"][0]["message"]["content"])
    except urllib.error.HTTPError as error:  # dropped in Sightline, or refused by the provider
        raise SystemExit(json.load(error)["error"]["message"]) from None


if __name__ == "__main__":
    main()
