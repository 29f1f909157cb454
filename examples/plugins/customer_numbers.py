"""A redactor: customer numbers with a right check digit, which no regular expression can tell from other numbers.

[plugins]
use = ["customer_numbers.py"]

sightline export --redact -o shared.jsonl
"""

import re
from collections.abc import Iterator

from sightline.plugins import Plugin


def find_customers(text: str) -> Iterator[str]:
    """Numbers of eight digits whose last digit is the sum of the others modulo 10."""
    for number in re.findall(r"(?<!\d)\d{8}(?!\d)", text):
        if sum(map(int, number[:-1])) % 10 == int(number[-1]):
            yield number


PLUGIN = Plugin(name="customer-numbers", redactors={"customer": find_customers})
