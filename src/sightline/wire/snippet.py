"""Turns a call into something to paste: a shell command, or a Python script, that sends exactly the same bytes.

Secrets are taken from the environment at run time. The command needs a POSIX shell and curl; the script needs only
Python.
"""

import re

from sightline.model.header_names import is_secret_header
from sightline.wire.call import RequestTemplate, TemplateValue, Variable

LONGEST_ARGUMENT = 100_000
"""Systems refuse to start a command with a longer argument. What the shell itself prints can have any length."""

_PLAIN = re.compile(r"[\w .,:;/?&=%+@~()-]*", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_LITERAL = frozenset(range(0x20, 0x7F)) - frozenset(b"\\%'")

_CURL = "curl --no-progress-meter --fail-with-body --no-buffer --globoff"

_SCRIPT = """\
import http.client
import os
import sys
import urllib.error
import urllib.request


def variable(name, help):
    value = os.environ.get(name, "").strip()
    return value or sys.exit(f"Set the variable {{name}} in the environment. {{help}}")


class Straight(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the key goes to this address and to no other


url = {url}
headers = {{
{headers}}}
body = {body}

request = urllib.request.Request(url, body, method={method})
for name, value in headers.items():
    if value is not None:
        request.add_header(name, value.encode())
try:
    with urllib.request.build_opener(Straight).open(request) as response:
        for line in response:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
except urllib.error.HTTPError as error:
    sys.stdout.buffer.write(error.read())
    sys.stdout.buffer.flush()
    sys.exit(f"HTTP {{error.code}} {{error.reason}}")
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"{{url}}: {{error}}")
"""


def curl(call: RequestTemplate) -> str:
    """A shell command that sends the call. It stops with a message if a required variable is not set."""
    before, url = _shell_url(call.url)
    lines = [
        f"{_CURL} -X {call.method} {url}",
        *(_shell_header(name, value) for name, value in _headers_without_secrets(call)),
    ]
    if _has_body(call):
        text = _printable(call.body)
        if text is None:
            before += f"printf {_printf_format(call.body)} | "
            lines.append("--data-binary @-")
        elif len(call.body) > LONGEST_ARGUMENT:
            before += f"printf %s {_quote_shell(text)} | "
            lines.append("--data-binary @-")
        else:  # --data-binary would take an argument that begins with @ as a file name
            lines.append(f"{'--data-raw' if text.startswith('@') else '--data-binary'} {_quote_shell(text)}")
    return before + " \\\n  ".join(lines) + "\n"


def python(call: RequestTemplate) -> str:
    """A Python script that sends the call and prints the answer line by line as it arrives."""
    headers = [f"    {name!r}: {_python(value)},\n" for name, value in _headers_without_secrets(call)]
    if all(name.lower() != "user-agent" for name, _ in call.headers):
        # Several providers reject Python's default user agent.
        headers.append("    'user-agent': 'sightline',\n")
    text = _printable(call.body)
    body = repr(call.body) if text is None else f"{text!r}.encode()"
    return _SCRIPT.format(
        url=_python(call.url),
        headers="".join(headers),
        body=body if _has_body(call) else None,
        method=repr(call.method),
    )


def _headers_without_secrets(call: RequestTemplate) -> list[tuple[str, TemplateValue]]:
    """The headers with a variable in place of each value that is a secret by its header's name: the output is pasted
    elsewhere, and settings may hold a secret in plain text."""
    headers = list(call.headers)
    for place, (name, value) in enumerate(headers):
        if isinstance(value, str) and is_secret_header(name):
            variable = Variable(re.sub(r"\W", "_", name.upper()), help=f"It is the value of the header {name}.")
            headers[place] = name, variable
    return headers


def _has_body(call: RequestTemplate) -> bool:
    return bool(call.body) or call.method != "GET"


def _printable(body: bytes) -> str | None:
    """The text of a body that can be printed and pasted intact; None if it cannot."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _quote_shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _printf_format(body: bytes) -> str:
    """The printf format that writes these bytes. A leading dash is escaped, because printf would take it as an
    option."""
    text = "".join("%%" if octet == 0x25 else chr(octet) if octet in _LITERAL else f"\\{octet:03o}" for octet in body)
    return "'" + (f"\\055{text[1:]}" if text.startswith("-") else text) + "'"


def _quote_around(before: str, value: str, after: str) -> str:
    """Put text around a shell expansion. Text that is special within double quotes is put in single quotes."""
    if _PLAIN.fullmatch(before + after):
        return f'"{before}{value}{after}"'
    return f'{_quote_shell(before)}"{value}"{_quote_shell(after)}'


def _shell_url(url: TemplateValue) -> tuple[str, str]:
    """The address as a shell word, and the command that checks it first."""
    if isinstance(url, str):
        return "", _quote_shell(url)
    # Addresses often end in a slash, and one expansion cannot both require a value and trim it.
    value = f"${{{url.name}%/}}" if url.suffix.startswith("/") else f"${{{url.name}}}"
    return f': "${{{url.name}:?}}" && ', _quote_around(url.prefix, value, url.suffix)


def _shell_header(name: str, template: TemplateValue) -> str:
    if isinstance(template, str):  # curl removes a header whose value is empty; a semicolon sends it empty
        return f"-H {_quote_shell(f'{name}: {template}' if template.strip() else f'{name};')}"
    before = f"{name}: {template.prefix}"
    if template.optional:
        words = _quote_around(before, f"${{{template.name}}}", template.suffix)
        return f"${{{template.name}:+-H}} ${{{template.name}:+{words}}}"
    return f"-H {_quote_around(before, f'${{{template.name}:?}}', template.suffix)}"


def _python(template: TemplateValue) -> str:
    if isinstance(template, str):
        return repr(template)
    value = (
        f"os.environ[{template.name!r}].strip()"
        if template.optional
        else f"variable({template.name!r}, {template.help!r})"
    )
    if template.suffix.startswith("/"):
        value += ".rstrip('/')"
    value = " + ".join(
        filter(None, (template.prefix and repr(template.prefix), value, template.suffix and repr(template.suffix)))
    )
    return f"{value} if os.environ.get({template.name!r}, '').strip() else None" if template.optional else value
