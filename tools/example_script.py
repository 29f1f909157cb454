"""What is said in the example: a small project with a bug, and the words of its user, agent, models and evals."""

from typing import Any

HOME = "/srv/recipes"
LARGE, SMALL, OTHER = "claude-sonnet-4-5", "claude-haiku-4-5", "gpt-4o-mini"
SESSION = "fix-fractions"
CHARACTERS_IN_A_TOKEN = 3.6
PROJECT = {
    "README.md": '# recipes\n\nReads ingredient lines of recipes: `parse_line("2 cups flour")`.\n',
    "recipes/__init__.py": "",
    "recipes/parser.py": '''"""Reads one line of an ingredient list."""

from dataclasses import dataclass

from recipes.units import UNITS


@dataclass(frozen=True)
class Ingredient:
    """An amount of something. `unit` is empty where the line has none, as in "2 eggs"."""

    amount: float
    unit: str
    name: str


def parse_line(line: str) -> Ingredient:
    """Read a line such as "2 cups flour". Raises ValueError if it does not begin with an amount."""
    first, *rest = line.split()
    amount = float(first)
    if rest and rest[0] in UNITS:
        return Ingredient(amount, UNITS[rest[0]], " ".join(rest[1:]))
    return Ingredient(amount, "", " ".join(rest))
''',
    "recipes/units.py": '''"""The units that a line can have, by every spelling."""

UNITS = {
    "cup": "cup",
    "cups": "cup",
    "g": "gram",
    "gram": "gram",
    "grams": "gram",
    "tbsp": "tablespoon",
    "tablespoon": "tablespoon",
    "tablespoons": "tablespoon",
    "tsp": "teaspoon",
    "teaspoon": "teaspoon",
    "teaspoons": "teaspoon",
}
''',
    "tests/__init__.py": "",
    "tests/test_parser.py": """import unittest

from recipes.parser import Ingredient, parse_line


class ParseLine(unittest.TestCase):
    def test_amount_unit_and_name(self):
        self.assertEqual(parse_line("2 cups flour"), Ingredient(2, "cup", "flour"))

    def test_a_line_without_a_unit(self):
        self.assertEqual(parse_line("3 eggs"), Ingredient(3, "", "eggs"))

    def test_a_fraction(self):
        self.assertEqual(parse_line("1/2 cup sugar"), Ingredient(0.5, "cup", "sugar"))


if __name__ == "__main__":
    unittest.main()
""",
}
FRACTION_FIX = (
    "    first, *rest = line.split()\n    amount = float(first)\n",
    "    first, *rest = line.split()\n    amount = float(Fraction(first))\n",
)
IMPORT_FIX = (
    "from dataclasses import dataclass\n",
    "from dataclasses import dataclass\nfrom fractions import Fraction\n",
)
MIXED_FIX = (
    "    amount = float(Fraction(first))\n",
    "    amount = Fraction(first)\n"
    "    while rest and rest[0][0].isdigit():\n"
    "        amount += Fraction(rest.pop(0))\n"
    "    amount = float(amount)\n",
)
SYSTEM = """You are a careful programming agent. You work in one folder on the user's machine, with the tools below.

# How to work
- Read before you change anything. Find the smallest change that does what the user asks.
- Run the tests before and after a change, and say what they showed. Never say that something
  works if you have not run it.
- Change only what the task needs. Do not rename, reformat or tidy other code on the way.
- If a task can be read in two ways, do what the existing code and its tests suggest, and say which reading you took.
- If you cannot do something, say so in one sentence, and say what would make it possible.

# How to use the tools
- Use Read for files and Grep for searching. Use Bash for commands that neither of them covers.
- Give paths relative to the project's folder. Do not leave that folder.
- Edit replaces one text by another. The old text must occur exactly once, so include a line of context around it.
- You may call several tools in one turn if none of them depends on another's result.
- A result that begins with "error:" did not work. Read it, and try another way instead of the same way again.

# How to answer
- Be brief: what was wrong, what you changed, what the tests showed. No headings, no lists of the obvious.
- Name files as `path:line`, so that the user can open them.
- Do not repeat the code that you have changed. The user sees the difference beside this conversation.

# Style of this project
- Python 3.11 or newer, the standard library only. Four spaces, double quotes, lines of at most 100 characters.
- Every function has a docstring that says what goes in, what comes out, and what is raised.
- Tests are in `tests/`, one class for each function, with names that read as sentences. Run them with
  `python -m unittest`.
- Amounts are floats in the public interface. Inside a function, use exact numbers where they matter.

# What the user can see
The user sees your text and every call with its result, and can hold, change or refuse each of them. A call that was
changed by the user comes back with a note. Accept the change: it is what the user wants.
"""
STATUS = "# Environment\nFolder: /srv/recipes\nPlatform: Linux\nBranch: main\nWorking tree: {tree}\n"
REMINDER = "<system-reminder>\nThe task list is empty. Use it for tasks with more than three steps.\n</system-reminder>"
REVIEWER = (
    "You review one change to a Python project. Read what you need, then say in at most three sentences whether the "
    "change is right, and what is missing. You cannot change files.\n\n"
    + SYSTEM[SYSTEM.index("# How to use the tools") :]
)
FIRST = '`parse_line("1/2 cup sugar")` raises a ValueError. Find out why and fix it, then run the tests.'
SECOND = 'Now make it accept "1 1/2 cups flour" as well, with a test.'
TASK = "Review the change to recipes/parser.py: does reading amounts as fractions break any line that worked before?"
MIXED_TEST = (
    '        self.assertEqual(parse_line("1/2 cup sugar"), Ingredient(0.5, "cup", "sugar"))\n',
    '        self.assertEqual(parse_line("1/2 cup sugar"), Ingredient(0.5, "cup", "sugar"))\n\n'
    "    def test_a_whole_number_and_a_fraction(self):\n"
    '        self.assertEqual(parse_line("1 1/2 cups flour"), Ingredient(1.5, "cup", "flour"))\n',
)


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"call": tool, "arguments": arguments}


def edit(path: str, change: tuple[str, str]) -> dict[str, Any]:
    return call("Edit", path=path, old=change[0], new=change[1])


TEST = call("Bash", command="python -m unittest")
AGENT: list[list[Any]] = [
    [
        "I'll look at the project and at the parser first.",
        call("Bash", command="ls -R"),
        call("Read", path="recipes/parser.py"),
    ],
    [call("Read", path="tests/test_parser.py"), call("Grep", pattern="float\\(")],
    ["The amount is read with `float`, which knows no fractions. I'll confirm it with the tests.", TEST],
    [
        "Confirmed. `Fraction` reads both spellings.",
        edit("recipes/parser.py", IMPORT_FIX),
        edit("recipes/parser.py", FRACTION_FIX),
    ],
    [TEST],
    ["The tests pass. I'll have the change reviewed.", call("Task", description="Review the change", prompt=TASK)],
    [
        "`float` cannot read `1/2`, so every line with a fraction raised a ValueError (`recipes/parser.py:21`). The "
        "amount is now read with `fractions.Fraction` and converted to a float. All three tests pass. A review found "
        "no line that worked before and fails now."
    ],
    [
        "I'll read a whole number and a fraction that follow each other.",
        edit("recipes/parser.py", MIXED_FIX),
        edit("tests/test_parser.py", MIXED_TEST),
    ],
    [TEST],
    ["Amounts such as `1 1/2` are now added up before the unit is read (`recipes/parser.py:22`). All four tests pass."],
]
REVIEW: list[list[Any]] = [
    [call("Read", path="recipes/parser.py"), call("Grep", pattern="parse_line")],
    [
        "The change is right: `Fraction` reads every text that `float` reads, apart from `inf` and `nan`, which no "
        "recipe has. A test for a mixed amount such as `1 1/2` is missing."
    ],
]
TOOLS = [
    {
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": {each: {"type": "string", "description": words} for each, words in fields.items()},
            "required": list(fields),
        },
    }
    for name, description, fields in (
        ("Read", "Read a file of the project. The result has a number in front of each line.", {"path": "The file"}),
        (
            "Edit",
            "Replace a text in a file by another. It must occur exactly once; otherwise nothing is changed, and the "
            "result says how often it occurs.",
            {"path": "The file", "old": "The text as it is, with line ends", "new": "The text that replaces it"},
        ),
        (
            "Grep",
            "Search all files of the project by a regular expression. The result has a line for each match: path, "
            "number and text.",
            {"pattern": "The expression, in Python's syntax"},
        ),
        (
            "Bash",
            "Run a command in the project's folder. The result is what it printed, and its exit status if that is not "
            "0. Commands that need longer than a minute are ended.",
            {"command": "The command"},
        ),
        (
            "Task",
            "Give a task to another agent, which has its own conversation, reads files and cannot change them. The "
            "result is its last message.",
            {
                "description": "The task in three to five words",
                "prompt": "The task, with all that the other agent needs",
            },
        ),
        (
            "mcp__tickets__search",
            "Search the tickets of the project by words. The result has the number, title and state of each.",
            {"words": "The words"},
        ),
        ("mcp__tickets__read", "Read a ticket with its comments.", {"number": "The ticket's number"}),
    )
]
CASES = {
    "cups": ("How many cups are 16 tablespoons?", "One cup.", "16 tablespoons are one cup."),
    "grams": ("How much does a cup of flour weigh, in grams?", "About 120 grams.", "About 120 grams."),
    "half": ("Write one half as a decimal number. Answer with the number only.", "0.5", "One half is 0.5."),
    "order": ("What comes first in a sponge cake: flour or eggs?", "The eggs, beaten with the sugar.", "The flour."),
}
SUITE = """name: kitchen
description: Short questions that a recipe program asks.
tests:
  - id: cups
    input: How many cups are 16 tablespoons?
    assertions:
      - type: regex
        value: "(?i)one|1"
  - id: grams
    input: How much does a cup of flour weigh, in grams?
    assertions:
      - type: contains
        value: "120"
  - id: half
    input: Write one half as a decimal number. Answer with the number only.
    assertions:
      - type: equals
        value: "0.5"
  - id: order
    input: "What comes first in a sponge cake: flour or eggs?"
    assertions:
      - type: icontains
        value: eggs
"""
KITCHEN = '''"""Tools of the chat in the example."""


def convert(amount: float, unit: str, to: str) -> str:
    """Convert an amount between cups, tablespoons and teaspoons."""
    sizes = {"cup": 48, "tablespoon": 3, "teaspoon": 1}
    return f"{amount * sizes[unit] / sizes[to]:g} {to}s"


def add_to_list(item: str) -> str:
    """Add a line to the shopping list."""
    return f"added: {item}"
'''
CHAT: dict[str, list[list[Any]]] = {
    "What can I use instead of buttermilk?": [
        ["Milk with a tablespoon of lemon juice for each cup. Let it stand for five minutes before you use it."]
    ],
    "And for pancakes without eggs?": [
        [
            "For each egg, a mashed half banana or three tablespoons of the water of canned chickpeas. The "
            "banana tastes a little."
        ]
    ],
    "How many tablespoons are three quarters of a cup? Put the sugar on the list.": [
        [
            call("convert", amount=0.75, unit="cup", to="tablespoon"),  # type: ignore[arg-type]
            call("add_to_list", item="sugar, 12 tablespoons"),
        ],
        ["Three quarters of a cup are 12 tablespoons. The sugar is on the list."],
    ],
}
HELD = {
    "model": "local",
    "messages": [
        {"role": "system", "content": "You are a patient cook. Answer in one short sentence."},
        {"role": "user", "content": "What can I cook from what is in the house?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": f"call_{place}", "type": "function", "function": {"name": "look", "arguments": arguments}}
                for place, arguments in (
                    ("fridge", '{"place": "fridge"}'),
                    ("shelf", '{"place": "shelf"}'),
                    ("garden", '{"place": "garden"}'),
                )
            ],
        },
        {"role": "tool", "tool_call_id": "call_fridge", "content": "two eggs, milk, butter, half a lemon"},
        {"role": "tool", "tool_call_id": "call_shelf", "content": "flour, sugar, salt, baking powder"},
        {"role": "tool", "tool_call_id": "call_garden", "content": "It rains. Nobody went out to look."},
        {"role": "user", "content": "Something sweet, please."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Look what there is at a place.",
                "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
            },
        }
    ],
    "max_tokens": 60,
}
SUMMARY = "Summarise the changes of today in one sentence."
TITLE = "Write a title of at most five words for this conversation. Answer with the title only."
EXPLAIN = "Explain in one sentence why a cake needs baking powder."
