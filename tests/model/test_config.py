"""Options: which source wins, and what wrong values say."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz import engines
from tarviz.model import config
from tarviz.model.errors import UsageError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("TARVIZ_CONFIG", str(path))
    return path


class TestOptions:
    def test_defaults(self):
        options = config.options()

        assert 4 << 20 == options.block_size
        assert 1 << 30 == options.max_member_bytes
        assert 180.0 == options.retry_timeout

    def test_a_file_wins_over_the_default(self, file: Path):
        file.write_text('block_size = "1MiB"\nworkers = 3\n')

        assert (1 << 20, 3) == (config.options().block_size, config.options().workers)
        assert str(file) == config.sources()["workers"][1]

    def test_the_environment_wins_over_a_file(self, file: Path, monkeypatch: pytest.MonkeyPatch):
        file.write_text("workers = 3\n")
        monkeypatch.setenv("TARVIZ_WORKERS", "5")

        assert (5, "TARVIZ_WORKERS") == config.sources()["workers"]

    def test_an_argument_wins_over_the_environment(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_WORKERS", "5")

        assert 2 == config.options(workers=2).workers
        assert 5 == config.options(workers=None).workers

    def test_the_keywords_are_the_options(self):
        assert {each.name for each in fields(config.Options)} == config.OptionKeywords.__annotations__.keys()

    def test_the_local_file_wins_over_the_one_at_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("TARVIZ_CONFIG")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "home" / "tarviz").mkdir(parents=True)
        (tmp_path / "home" / "tarviz" / "config.toml").write_text("workers = 1\nmax_ratio = 7\n")
        (tmp_path / "tarviz.toml").write_text("workers = 2\n")

        assert (2, 7) == (config.options().workers, config.options().max_ratio)
        (tmp_path / "tarviz.toml").unlink()
        assert (1, 7) == (config.options().workers, config.options().max_ratio)

    def test_a_changed_file_is_read_again(self, file: Path):
        file.write_text("workers = 3\n")
        config.options()
        file.write_text("workers = 44\n")

        assert 44 == config.options().workers

    def test_a_home_in_the_cache_path_is_expanded(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_CACHE_DIR", "~/tv")

        assert Path.home() / "tv" == config.options().cache_dir

    @pytest.mark.parametrize("content", ["workers = -1", "workers = 'many'", "retry_timeout = 0", "block_size = '3'", "progress = 'loud'"])
    def test_a_wrong_value_names_the_file_and_the_option(self, file: Path, content: str):
        file.write_text(content)

        with pytest.raises(UsageError, match=content.split()[0]) as caught:
            config.options()
        assert file.name in str(caught.value)

    def test_an_unknown_option_lists_what_there_is(self, file: Path):
        file.write_text("blocksize = 1\n")

        with pytest.raises(UsageError, match="block_size"):
            config.options()

    @pytest.mark.parametrize(
        ("option", "good", "bad"),
        [
            ("block_size", {4096: 4096, "4KiB": 4096, 1 << 30: 1 << 30}, [4095, (1 << 30) + 1]),
            ("stall_timeout", {0.001: 0.001, "999999999": 999_999_999.0}, [0, 1e9, -1, True]),
            ("workers", {"2": 2, 3.0: 3}, [1.5, -1, "x", True]),
            ("progress", {True: "on", False: "off", "1": "on", "0": "off", "auto": "auto", "on": "on", "off": "off"}, ["yes", 2]),
            (
                "override",
                {" ops.resize ,viewers.text, ": "ops.resize,viewers.text", "": ""},
                ["resize", "ops.a viewers.b", "Ops.a"],
            ),
            ("cache_dir", {"/a": Path("/a")}, [""]),
        ],
    )
    def test_values_are_taken_within_their_bounds(self, option: str, good: dict[object, object], bad: list[object]):
        assert good == {value: getattr(config.options(**{option: value}), option) for value in good}
        for value in bad:
            with pytest.raises(UsageError, match=option):
                config.options(**{option: value})

    def test_an_unknown_argument_is_refused(self):
        with pytest.raises(UsageError, match="not an option"):
            config.options(blocksize=None)

    def test_a_file_that_is_named_and_not_there_is_an_error(self, file: Path):
        with pytest.raises(UsageError, match=r"TARVIZ_CONFIG names .*config\.toml: No such file"):
            config.options()

    def test_a_file_that_cannot_be_read_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("TARVIZ_CONFIG")
        monkeypatch.chdir(tmp_path)
        (tmp_path / "tarviz.toml").mkdir()

        with pytest.raises(UsageError, match=r"tarviz\.toml cannot be read: Is a directory"):
            config.options()

    def test_an_empty_text_wins_over_a_file(self, file: Path, monkeypatch: pytest.MonkeyPatch):
        file.write_text('tags = "a.jsonl"\nworkers = 3\n')
        monkeypatch.setenv("TARVIZ_TAGS", "")
        monkeypatch.setenv("TARVIZ_WORKERS", "")  # no number: as if it were not set

        assert (("", "TARVIZ_TAGS"), 3) == (config.sources()["tags"], config.options().workers)

    def test_a_broken_file_is_named(self, file: Path):
        file.write_text("workers = ")

        with pytest.raises(UsageError, match="not TOML"):
            config.options()


class TestParseSize:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [("0", 0), ("17", 17), ("1e9", 10**9), ("100MB", 10**8), ("100MiB", 100 << 20), ("1.5GB", 1_500_000_000), ("2g", 2 * 10**9),
         ("64k", 64_000), (" 1 KiB ", 1024), (1e9, 10**9), (5, 5), (".5MB", 500_000), ("1.5e3", 1500), ("10B", 10)],
    )  # fmt: skip
    def test_reads_what_people_write(self, text: str, expected: int):
        assert expected == config.parse_size(text)

    @pytest.mark.parametrize("text", ["", "big", "-1", "1ib", "1XB", "1e99", "nan", "inf", "1e9e9", "0x10", "1 2", "MB"])
    def test_refuses_the_rest(self, text: str):
        with pytest.raises(UsageError, match="not a size"):
            config.parse_size(text)

    @given(st.integers(0, 2**50))
    def test_a_plain_number_is_itself(self, number: int):
        assert number == config.parse_size(str(number))

    @given(st.floats(0, 1e15))
    def test_a_formatted_size_reads_back_within_a_percent(self, number: float):
        assert config.parse_size(config.format_size(number)) == pytest.approx(number, rel=0.006, abs=0.6)

    def test_three_digits_and_a_unit_are_written(self):
        sizes = [0, 999, 1000, 9_940, 99_940, 100_000, 999_499, 999_500, 2e18, -5000]

        assert ["0 B", "999 B", "1.00 kB", "9.94 kB", "99.9 kB", "100 kB", "999 kB", "1.00 MB", "2000 PB", "-5.00 kB"] == [
            config.format_size(size) for size in sizes
        ]

    def test_limits_of_a_number(self):
        assert 999_999_999_999_999_872 == config.parse_size(999_999_999_999_999_872)
        for text in (10**18, "9.1e15k", True):
            with pytest.raises(UsageError, match="not a size"):
                config.parse_size(text)


@pytest.mark.parametrize(
    ("platform", "variables", "cache", "data"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "/d"}, "/c/tarviz", "/d/tarviz"),
        ("linux", {}, "/home/x/.cache/tarviz", "/home/x/.local/share/tarviz"),
        ("darwin", {}, "/home/x/.cache/tarviz", "/home/x/Library/Application Support/tarviz"),
        ("win32", {}, "/home/x/.cache/tarviz", "/home/x/AppData/Local/tarviz"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/home/x/.cache/tarviz", "/l/tarviz"),
    ],
)
def test_folders_are_where_the_system_has_them(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], cache: str, data: str
):
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/x", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tarviz.model.config.sys.platform", platform)

    assert (Path(cache), Path(data)) == (config.Options().cache_dir, config.Options().data_dir)


class TestWith:
    def test_options_are_in_force_until_its_end(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_WORKERS", "5")

        with config.options(workers=4) as chosen:
            assert (4, 4) == (chosen.workers, config.options().workers)
            assert (4, "with") == config.sources()["workers"]
            assert 2 == config.options(workers=2).workers
        assert 5 == config.options().workers

    def test_an_error_ends_it(self):
        with pytest.raises(KeyError), config.options(max_ratio=7):
            raise KeyError

        assert 1000 == config.options().max_ratio

    def test_the_inner_one_wins_and_keeps_the_rest_of_the_outer(self):
        with config.options(workers=4, max_ratio=7), config.options(workers=2):
            assert (2, 7) == (config.options().workers, config.options().max_ratio)

    def test_one_that_ends_before_another_takes_away_only_its_own(self):
        first, second = config.options(workers=4), config.options(max_ratio=7)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)

        try:
            assert (0, 7) == (config.options().workers, config.options().max_ratio)
        finally:
            second.__exit__(None, None, None)

    def test_one_within_itself_ends_the_inner_one_first(self):
        outer = config.options(workers=4)
        with outer, config.options(workers=5):
            with outer:
                assert 4 == config.options().workers
            assert 5 == config.options().workers

    def test_what_it_leaves_out_still_follows_the_environment(self, monkeypatch: pytest.MonkeyPatch):
        with config.options(workers=4):
            monkeypatch.setenv("TARVIZ_MAX_RATIO", "9")

            assert 9 == config.options().max_ratio

    def test_threads_and_processes_have_them_too(self):
        with config.options(workers=4), ThreadPoolExecutor(1) as pool:
            assert 4 == pool.submit(lambda: config.options().workers).result()
            with engines.start("local", _Workers(), engines.EnginePlan(2)) as engine:
                assert [4, 4] == [found for found, _ in engine.run([1, 2])]
            with config.options(workers=5, max_ratio=7):
                assert {"TARVIZ_WORKERS": "5", "TARVIZ_MAX_RATIO": "7"}.items() <= config.environment().items()

    def test_a_text_that_is_emptied_is_empty_in_processes_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "config.toml").write_text('tags = "a.jsonl"\n')
        monkeypatch.setenv("TARVIZ_CONFIG", str(tmp_path / "config.toml"))
        with config.options(tags=""):
            code = "from tarviz.model import config; print(repr(config.options().tags))"
            said = subprocess.run([sys.executable, "-c", code], env=config.environment(), capture_output=True, text=True, check=True)

        assert "''\n" == said.stdout


class _Workers:
    """A job that says how many workers are configured where it runs."""

    def __call__(self, task: int, file: object, tick: object) -> int:
        return config.options().workers


class TestStorageOptions:
    def test_they_are_json_by_the_beginning_of_a_url(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"a": 1, "s3://b/": {"a": 2}}')

        assert {"a": 1, "s3://b/": {"a": 2}} == json.loads(config.options().storage_options)

    @pytest.mark.parametrize("given", [{"a": 1}, '{"a": 1}', {}, "{}", ""])
    def test_an_argument_may_be_an_object_or_its_text(self, given: str | dict[str, int]):
        expected = '{"a": 1}' if "a" in given else ""

        assert expected == config.options(storage_options=given).storage_options

    @pytest.mark.parametrize("text", ["[1]", "[]", "{", '{"a": {"b": 1}}', '{"s3://b/": 1}', "planted-secret"])
    def test_others_are_refused_and_not_shown(self, monkeypatch: pytest.MonkeyPatch, text: str):
        monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", text)
        with pytest.raises(UsageError, match="no JSON object") as caught:
            config.options()

        assert "planted" not in str(caught.value)

    def test_their_values_are_not_shown(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_STORAGE_OPTIONS", '{"password": "planted-secret"}')

        assert "planted" not in repr(config.options()) + repr(config.sources())
