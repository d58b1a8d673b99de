"""The modules and style sheets of a widget, joined into one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarviz.widgets.host import assets

WIDGETS = Path(assets.__file__).parents[1]


@pytest.mark.parametrize("pattern", ["*.mjs", "*.css"])
def test_every_file_of_the_rooms_is_found_by_its_name_alone(pattern):
    found = sorted(WIDGETS.rglob(pattern))

    assert found
    assert len(found) == len({path.name for path in found})
    assert {path.name: path.read_text("utf-8") for path in found} == {path.name: assets.read(path.name) for path in found}


@pytest.mark.parametrize("script", ["browse", "compare", "bench"])
def test_a_module_comes_after_all_that_it_imports(script):
    parts = assets.parts(script)

    assert len(parts) == len(set(parts))
    for at, part in enumerate(parts):
        assert set(assets.parts(part)[:-1]) <= set(parts[:at])


def test_the_browser_is_made_of_parts_from_all_its_rooms():
    assert {"core", "panels", "facets", "grid", "browse"} <= set(assets.parts("browse"))
    assert ".tvz-facet" in assets.style("browse")


def test_a_file_that_no_room_holds_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"no room of tarviz\.widgets holds none\.mjs"):
        assets.read("none.mjs")
