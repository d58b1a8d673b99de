"""The program of a shell that runs one command for record after record, in a subshell each, or without a fork where that is safe."""

from __future__ import annotations

import re

# A line comes in for each record: its folder and its key, whose bytes are escaped; its exit code goes out
# as a line. The command sees neither descriptor.
_DRIVER = r"""
_tarviz_base=$1 _tarviz_command=$2; shift 2
export TARVIZ_KEY
while IFS=' ' read -r _tarviz_folder _tarviz_key <&IN; do
  printf -v TARVIZ_KEY %b "$_tarviz_key"
  RUN
  printf '%d\n' "$?" >&OUT
done
"""
_SUBSHELL = """( exec IN<&- OUT>&-; cd "$_tarviz_base/$_tarviz_folder" && eval "$_tarviz_command" ) </dev/null LOG"""
_SAME_SHELL = """cd "$_tarviz_base/$_tarviz_folder" && eval "$_tarviz_command" </dev/null LOG IN<&- OUT>&-"""
_LOG = """>"$_tarviz_base/log" 2>&1"""
# One simple command, without anything a shell expands but file names, and none of bash's words that change the shell itself.
_SIMPLE = re.compile(r"[\w./+-]+(?:[ \t]+[\w./+\-=,:@%*?]+)*[ \t]*")
_CHANGING = {
    ".", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command", "compgen", "complete", "compopt", "continue",
    "coproc", "declare", "dirs", "disown", "do", "done", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "fc",
    "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs", "let", "local", "logout", "mapfile",
    "popd", "pushd", "read", "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend", "then",
    "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
}  # fmt: skip


def is_simple(command: str) -> bool:
    """Whether a command leaves the shell that runs it as it was, and nothing after it."""
    return _SIMPLE.fullmatch(command) is not None and command.split()[0] not in _CHANGING


def driver(command: str, inner: int, outer: int, *, log: bool) -> str:
    """The script of a worker's shell, which reads from one descriptor and writes to another; `log` keeps what the command prints."""
    text = _DRIVER.replace("RUN", _SAME_SHELL if is_simple(command) else _SUBSHELL)
    return text.replace(" LOG", f" {_LOG}" if log else "").replace("IN", str(inner)).replace("OUT", str(outer))


def escape_key(key: bytes) -> bytes:
    """A key as `printf %b` reads it."""
    return b"".join(b"\\0%03o" % byte for byte in key)
