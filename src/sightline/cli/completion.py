"""`sightline completion`: prints completion scripts for shells, generated from the parser."""

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.cli.program import commands_below, parser, summaries_of
from sightline.cli.terminal import write


@dataclass(frozen=True, slots=True)
class Completions:
    """What may follow a command: words with their descriptions, and the values that options take."""

    words: dict[str, str]
    values: dict[str, tuple[str, ...]]


def run(arguments: argparse.Namespace) -> int:
    program = parser()
    found = {path: _completions_of(command) for path, command in (("", program), *commands_below(program))}
    write(_SHELLS[arguments.shell](found).encode())
    return 0


def _completions_of(command: argparse.ArgumentParser) -> Completions:
    words = summaries_of(command)
    values: dict[str, tuple[str, ...]] = {}
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        choices = tuple(map(str, action.choices or ()))
        if action.option_strings:
            words |= {option: _in_a_line(action.help) for option in action.option_strings if option.startswith("--")}
            values |= {option: choices for option in action.option_strings if choices}
        else:
            words |= dict.fromkeys(choices, _in_a_line(action.help))
    return Completions(words, values)


def _in_a_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


def _value_cases(found: dict[str, Completions]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for path, each in found.items():
        for option, choices in each.values.items():
            yield f"{path} {option}".strip(), choices


def _bash(found: dict[str, Completions]) -> str:
    known = "|".join(shlex.quote(path) for path in found if path)
    words = "\n".join(
        f"    {shlex.quote(path)}) words={shlex.quote(' '.join(each.words))} ;;" for path, each in found.items()
    )
    values = "\n".join(
        f"    {shlex.quote(at)}) words={shlex.quote(' '.join(taken))} ;;" for at, taken in _value_cases(found)
    )
    return f"""\
# bash completion of sightline
_sightline() {{
  local at taken='' words='' next
  for ((at = 1; at < COMP_CWORD; at++)); do
    [ "${{COMP_WORDS[at]}}" = -- ] && return  # the words of another program
    next="${{taken:+$taken }}${{COMP_WORDS[at]}}"
    case "$next" in
    {known}) taken=$next ;;
    esac
  done
  case "$taken" in
{words}
  esac
  case "${{taken:+$taken }}${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _sightline sightline
"""


def _zsh(found: dict[str, Completions]) -> str:
    def describe(each: Completions) -> str:
        return " ".join(shlex.quote(f"{word}:{meaning}") for word, meaning in each.words.items())

    known = "|".join(shlex.quote(path) for path in found if path)
    words = "\n".join(f"    ({shlex.quote(path)}) found=({describe(each)}) ;;" for path, each in found.items())
    values = "\n".join(f"    ({shlex.quote(at)}) found=({' '.join(taken)}) ;;" for at, taken in _value_cases(found))
    return f"""\
#compdef sightline
_sightline() {{
  local taken='' word next
  local -a found
  for word in ${{words[2,CURRENT-1]}}; do
    [[ $word == -- ]] && {{ _normal; return }}  # the words of another program
    next="${{taken:+$taken }}$word"
    case $next in
    ({known}) taken=$next ;;
    esac
  done
  case $taken in
{words}
  esac
  case "${{taken:+$taken }}${{words[CURRENT-1]}}" in
{values}
  esac
  _describe sightline found || _files
}}
compdef _sightline sightline
"""


def _fish(found: dict[str, Completions]) -> str:
    def quote(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = [
        f"complete -c sightline -n {quote(f'__sightline_at {quote(path)}')} {_fish_word(word)} -d {quote(meaning)}"
        for path, each in found.items()
        for word, meaning in each.words.items()
    ]
    lines += [
        f"complete -c sightline -n {quote(f'__sightline_after {quote(at)}')} -f -a {quote(' '.join(taken))}"
        for at, taken in _value_cases(found)
    ]
    known = " ".join(quote(path) for path in found if path)
    body = "\n".join(lines)
    return f"""\
# fish completion of sightline
function __sightline_taken
  set -l taken
  for word in (commandline -opc)[2..]
    test "$word" = --; and return 1
    set -l next (string join ' ' -- $taken $word)
    contains -- "$next" {known}; and set taken $taken $word
  end
  string join ' ' -- $taken
  return 0
end
function __sightline_at
  set -l taken (__sightline_taken); and test "$taken" = "$argv[1]"
end
function __sightline_after
  set -l taken (__sightline_taken); and test (string join ' ' -- $taken (commandline -opc)[-1]) = "$argv[1]"
end
{body}
"""


def _fish_word(word: str) -> str:
    return f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-f -a {word}"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
