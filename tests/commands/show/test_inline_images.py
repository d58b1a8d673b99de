"""Pictures in terminals: told by the environment, drawn as each of them wants it, never asked for."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tarviz.commands.show import inline_images, show
from tests.conftest import DATA
from tests.widgets.conftest import png, tar

PICTURE = np.zeros((20, 30, 3), np.uint8)
PICTURE[:10, :, 0] = 255
PICTURE[:, 15:, 2] = 255


def encoded(kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(PICTURE).save(out, kind)
    return out.getvalue()


class TestProtocol:
    def test_is_told_by_the_environment(self):
        for environ, expected in [
            ({"TERM": "xterm-kitty"}, "kitty"),
            ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
            ({"TERM_PROGRAM": "ghostty"}, "kitty"),
            ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
            ({"LC_TERMINAL": "iTerm2", "TERM": "xterm-256color"}, "iterm2"),
            ({"TERM": "foot"}, "sixel"),
            ({"TERM": "xterm-sixel"}, "sixel"),
            ({"TERM": "xterm-256color"}, None),
            ({"TERM": "dumb"}, None),
            ({}, None),
            ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1"}, None),
            ({"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "LC_TERMINAL": "iTerm2"}, None),
        ]:
            assert expected == inline_images._terminal_protocol(environ)

    def test_no_terminal_gets_no_picture(self):
        assert inline_images.protocol("auto", {"TERM": "xterm-kitty"}) is None

    def test_a_choice_is_followed(self):
        assert ("sixel", None) == (inline_images.protocol("sixel"), inline_images.protocol("no"))


class TestDrawn:
    @pytest.mark.parametrize("kind", ["PNG", "JPEG"])
    def test_kitty_gets_png_in_chunks(self, kind: str):
        noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
        out = io.BytesIO()
        Image.fromarray(noise).save(out, kind)
        text = inline_images.draw(out.getvalue(), "kitty")

        chunks = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", text)
        assert text == "".join(f"\x1b_G{head};{body}\x1b\\" for head, body in chunks)
        assert ["1"] * (len(chunks) - 1) + ["0"] == [re.search(r"m=(\d)", head)[1] for head, _ in chunks]  # type: ignore[index]
        assert all(len(body) <= 4096 for _, body in chunks)
        assert (64, 64) == Image.open(io.BytesIO(base64.b64decode("".join(body for _, body in chunks)))).size

    def test_iterm2_gets_the_file(self):
        data = encoded("JPEG")

        head, body = inline_images.draw(data, "iterm2").split(":")
        assert head.startswith("\x1b]1337;File=inline=1;")
        assert f"size={len(data)}" in head
        assert data == base64.b64decode(body.removesuffix("\a"))

    def test_sixels_say_the_picture(self):
        text = inline_images.draw(encoded(), "sixel")

        assert text.startswith('\x1bPq"1;1;30;20')
        assert text.endswith("\x1b\\")
        assert np.array_equal(PICTURE, _decoded(text))


def _decoded(text: str) -> Any:
    """What a terminal makes of sixels."""
    width, height = (int(each) for each in re.match(r'\x1bPq"1;1;(\d+);(\d+)', text).groups())  # type: ignore[union-attr]
    out = np.zeros((height + 6, width, 3), np.uint8)
    colours: dict[int, tuple[int, ...]] = {}
    x = y = colour = 0
    body = re.sub(r'^\x1bPq"1;1;\d+;\d+', "", text)[:-2]
    for number, rgb, run, char in re.findall(r"#(\d+)((?:;\d+)*)|(?:!(\d+))?([?-~]|[$-])", body):
        if number:
            colour = int(number)
            if rgb:
                colours[colour] = tuple(round(int(each) * 255 / 100) for each in rgb.split(";")[2:])
        elif char == "$":
            x = 0
        elif char == "-":
            x, y = 0, y + 6
        else:
            stop = x + int(run or 1)
            for bit in (each for each in range(6) if (ord(char) - 63) >> each & 1):
                out[y + bit, x:stop] = colours[colour]
            x = stop
    return out[:height]


class TestShow:
    def test_pictures_stand_below_their_record(self, photos: Path):
        text = str(replace(show(str(photos), count=2), inline="iterm2"))

        assert ["record 0", "\x1b]1337", "record 1", "\x1b]1337"] == re.findall(r"record \d|\x1b\]1337", text)

    def test_fields_are_chosen(self, photos: Path):
        text = str(show(str(photos), count=1, fields="cls"))

        assert "cls" in text
        assert "jpg" not in text
        assert text == str(replace(show(str(photos), count=1, fields="cls"), inline="kitty"))

    def test_what_cannot_be_decoded_draws_nothing(self):
        path = next((DATA / "corpora" / "generated").glob("D00-*.tar"), None)
        if path is None:
            pytest.skip("the corpus of hostile payloads is not here")

        assert str(replace(show(str(path), count=40), inline="sixel")).count("\x1bPq") <= 3

    def test_a_png_sheet(self, photos: Path, bash: Any, tmp_path: Path):
        done = bash(f"tarviz show --png sheet.png -n 10 {photos}")

        assert b"10 records in sheet.png\n" == done.stdout
        assert (8 * 168 + 8, 2 * 182 + 8) == Image.open(io.BytesIO((tmp_path / "sheet.png").read_bytes())).size

    @pytest.mark.matrix
    def test_the_shell_draws_when_told_to_and_a_pipe_gets_none(self, photos: Path, bash: Any):
        assert b"\x1b_G" in bash(f"tarviz show --inline kitty -n 1 {photos}").stdout
        assert b"\x1b" not in bash(f"tarviz show -n 1 {photos}", env={"TERM": "xterm-kitty"}).stdout
        shown = bash(f"script -qec 'tarviz show -n 1 {photos}' /dev/null", env={"TERM": "xterm-kitty"}).stdout
        assert b"\x1b_G" in shown

    def test_a_terminal_that_cannot_gets_text_and_is_not_asked(self, photos: Path, bash: Any):
        shown = bash(
            f"script -qec 'tarviz show -n 1 {photos}' /dev/null < /dev/null", env={"TERM": "xterm-256color", "TERM_PROGRAM": ""}
        ).stdout

        assert b"\x1b" not in shown
        assert b"RGB JPEG" in shown


class TestSheet:
    def test_pictures_stand_in_the_middle_of_their_places(self, tmp_path: Path):
        """Eight in a row, each 160 pixels wide with 8 between, 14 below for the key."""
        colours = [(250, 20 * at, 10) for at in range(9)]
        sizes = [(320, 160) if at % 2 else (80, 160) for at in range(9)]
        path = tar(tmp_path / "a.tar", [(f"k{at}", {"png": png(colours[at], sizes[at])}) for at in range(9)])
        sheet = Image.open(io.BytesIO(inline_images.sheet(show(str(path), count=9))))

        assert ((8 * 168 + 8, 2 * 182 + 8), "RGB") == (sheet.size, sheet.mode)
        for at in range(9):
            x, y = 8 + at % 8 * 168, 8 + at // 8 * 182
            box = (x, y + 40, x + 159, y + 119) if at % 2 else (x + 40, y, x + 119, y + 159)
            corners = [sheet.getpixel(place) for place in (box[:2], box[2:], (box[0], box[3]), (box[2], box[1]))]
            outside = [sheet.getpixel(place) for place in ((box[0] - 1, y + 80), (box[2] + 1, y + 80), (x + 80, y - 1))]
            assert all(max(abs(a - b) for a, b in zip(corner, colours[at], strict=True)) < 12 for corner in corners)
            assert [(255, 255, 255)] * 3 == outside
            assert np.asarray(sheet)[y + 160 : y + 174, x : x + 160].min() < 99  # the key

    def test_one_picture_and_none(self, tmp_path: Path):
        one = tar(tmp_path / "a.tar", [("k", {"png": png()})])
        none = tar(tmp_path / "b.tar", [("k", {"txt": b""})])

        assert [(176, 190), (176, 190)] == [Image.open(io.BytesIO(inline_images.sheet(show(str(path))))).size for path in (one, none)]

    @pytest.mark.parametrize(("key", "same"), [("x" * 26, "x" * 26), ("y" * 3 + "x" * 25, "z" * 3 + "x" * 25), ("é", "?")])
    def test_a_key_is_written_as_far_as_there_is_room(self, tmp_path: Path, key: str, same: str):
        def written(name: str) -> bytes:
            path = tar(tmp_path / "a.tar", [(name, {"png": png()})])
            return inline_images.sheet(show(str(path)))

        assert written(key) == written(same) != written("other")


def test_pictures_change_nothing_but_the_text(tmp_path: Path):
    path = tar(tmp_path / "a.tar", [("k", {"png": png(), "png.png": png((1, 2, 3)), "txt": b"t"}), ("l", {"txt": b"u"})])
    shown = show(str(path))
    made = replace(shown, inline="iterm2")
    first, second = str(replace(shown, records=shown.records[:1])), str(replace(shown, records=shown.records[1:]))
    tiles = " ".join(inline_images.draw(tile, "iterm2") for _, tile in inline_images.pictures(shown.records[0], None))

    assert 2 == tiles.count("\x1b]1337")
    assert f"{first}\n{tiles}\n{second}" == str(made)
    assert (shown.exit_code, shown.to_dict()) == (made.exit_code, made.to_dict())


def test_a_terminal_is_told_by_its_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    assert ["kitty", None] == [inline_images.protocol("auto", {"TERM": term}) for term in ("xterm-kitty", "xterm")]
    monkeypatch.setattr("sys.stdout", None)
    assert inline_images.protocol("auto", {"TERM": "xterm-kitty"}) is None
