"""The shell that runs one command for record after record: when it forks, and what the command sees."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarviz.commands.proc import proc
from tarviz.testing.strategies import numbered_records
from tarviz.tools import shell_driver
from tests.commands.conftest import plain

Make = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("tmp")


class TestDriver:
    def test_simple_commands_need_no_subshell(self):
        for command in ["true", "gm mogrify -resize 256x256 *.jpg", "./run-ocr  sample.png ", "cp -p sample.png sample-1.png"]:
            assert "( exec" not in shell_driver.driver(command, 7, 8, log=False)

    def test_what_could_change_the_shell_runs_in_one_of_its_own(self):
        for command in [
            "cd ..",
            "x=1 true",
            "exit 3",
            "true; true",
            "true & true",
            "cat < a",
            "echo $HOME",
            "exec true",
            "set -e",
            "a=b",
            "time true",
            "'true'",
            "f() { :; }",
        ]:
            assert "( exec 7<&- 8>&-" in shell_driver.driver(command, 7, 8, log=False)

    @pytest.mark.parametrize("more", ["", "; true"], ids=["simple", "subshell"])
    def test_the_command_has_no_descriptors_but_the_usual_three(self, make: Make, out: Path, more: str):
        count = "import os; found = sorted(os.listdir('/proc/self/fd')); open('sample.fds', 'w').write(' '.join(found))"
        script = out.with_name("count.py")
        script.write_text(count)

        proc(make(numbered_records(3)), out, command=f"{sys.executable} {script}{more}")

        # the fourth is that of the folder /proc/self/fd itself
        assert [b"0 1 2 3"] * 3 == [fields["fds"] for _, fields in plain(out)]

    @pytest.mark.parametrize("command", ["rm -f sample.png", "chmod 500 .", "mkdir -p more/b", "ln -s / sample.up", "touch sample.a.b"])
    def test_nothing_of_one_record_is_there_for_the_next(self, make: Make, out: Path, command: str):
        given = numbered_records(4)
        proc(make(given[:2] + [(key, {"cls": fields["cls"]}) for key, fields in given[2:]]), out, command=command)
        found = plain(out)

        assert [b"0", b"1", b"2", b"3"] == [fields["cls"] for _, fields in found]
        assert "png" not in found[2][1]

    @pytest.mark.parametrize("more", ["", "; true"], ids=["simple", "subshell"])
    def test_each_record_has_its_folder_its_key_and_an_empty_input(self, make: Make, out: Path, more: str):
        script = out.with_name("look.py")
        script.write_text(
            "import os, sys; open('sample.seen', 'w').write(os.environ['TARVIZ_KEY'] + str(sys.stdin.read()) + str(len(os.listdir('.'))))"
        )

        proc(make(numbered_records(4)), out, command=f"{sys.executable} {script}{more}", workers=2)

        assert [(f"{key}3").encode() for key, _ in numbered_records(4)] == [fields["seen"] for _, fields in plain(out)]
