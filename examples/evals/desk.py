"""A help desk that needs no model: it reads a question, looks things up, and answers in the form that suites read."""

import json
import sys
from pathlib import Path
from typing import Any

ORDERS = {"A-17": "shipped on Monday", "B-20": "waiting for payment"}


def answered(question: str) -> tuple[str, list[dict[str, Any]]]:
    """What it says, and the tools that it called for that."""
    asked = question.rpartition("@[User]:")[2]
    for order, state in ORDERS.items():
        if order in asked:
            call = {"tool": "find_order", "input": {"order": order}, "output": state, "id": "call_1"}
            return f"Order {order} is {state}. Thank you for asking.", [call]
    if "refund" in asked.lower():
        return "You get your money back within 14 days. Thank you for asking.", []
    if "JSON" in asked:
        return json.dumps({"order": "A-17", "days": 3}), []
    if "name" in asked:
        name = question.rpartition("I am ")[2].split(".")[0]
        return f"Your name is {name}. Thank you for asking.", []
    return "Hello! How can I help? Thank you for asking.", []


def main() -> None:
    """Read the question from one file, and write the answer to another."""
    question, output = Path(sys.argv[1]), Path(sys.argv[2])
    text, calls = answered(question.read_text(encoding="utf-8"))
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    output.write_text(json.dumps({"output": [message]}), encoding="utf-8")


if __name__ == "__main__":
    main()
