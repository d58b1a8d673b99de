"""A command for a shard: its name is never read as code, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.model.errors import UsageError
from tarviz.tools.shard_command import environment, line, run_for

NAMES = [
    "a b.tar",
    "$(touch gone).tar",
    "`touch gone`.tar",
    "a'; touch gone; '.tar",
    'a"; touch gone; ".tar',
    "-rf.tar",
    "*.tar",
    "a\nb.tar",
    "${HOME}.tar",
]


class TestNames:
    def test_any_name_is_one_argument(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        for name in NAMES:
            for command in ["printf %s {shard} > out", "printf %s '{shard}' > out", 'printf %s "{shard}" > out']:
                monkeypatch.chdir(tmp_path)
                assert 0 == run_for(command, name)

                assert name == (tmp_path / "out").read_text()
                assert not (tmp_path / "gone").exists()

    def test_a_plain_command_gets_the_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        run_for("touch", "a b.tar")

        assert ["a b.tar"] == [each.name for each in tmp_path.iterdir()]

    def test_one_with_signs_of_the_shell_gets_none(self):
        for command in ["echo a; true", "true | cat", "cat < /dev/null", "true & wait", "(true)"]:
            assert command == line(command)

    def test_signs_inside_quotes_are_none(self):
        assert "echo 'a;b' \"${TARVIZ_SHARD}\"" == line("echo 'a;b'")


class TestParts:
    def test_each_part_of_the_name_is_there(self):
        found = environment("out/train.v2/a.tar.gz")

        assert ("a", ".tar.gz", "a.tar.gz", "out/train.v2") == tuple(
            found[f"TARVIZ_{name}"] for name in ("BASE", "EXT", "BASENAME", "DIRNAME")
        )
        assert found["TARVIZ_ABSPATH"].endswith("/out/train.v2/a.tar.gz")
        assert "s3://b/a.tar" == environment("s3://b/a.tar")["TARVIZ_ABSPATH"]

    def test_what_is_no_command_is_refused(self):
        for command in ["", "  ", "echo 'a", 'echo "a']:
            with pytest.raises(UsageError):
                line(command)

    def test_its_exit_code_is_handed_on(self):
        assert (7, -9) == (run_for("exit 7; ", "a.tar"), run_for("kill -9 $$; ", "a.tar"))


def test_a_sign_behind_a_backslash_is_no_quote_and_no_place():
    for command, expected in [
        (r"echo \{shard}", r"echo \{shard}" + ' "${TARVIZ_SHARD}"'),
        (r"echo \' {base}", r"echo \' " + '"${TARVIZ_BASE}"'),
        (r'''echo "\"{base}"''', r'''echo "\"${TARVIZ_BASE}"'''),
        (r"echo '\'{ext}", r"echo '\'" + '"${TARVIZ_EXT}"'),
        (r"echo \; {nothing}", r"echo \; {nothing}" + ' "${TARVIZ_SHARD}"'),
    ]:
        assert expected == line(command)
