"""The document checks find what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import tables


@pytest.fixture
def page() -> Path:
    return tables.ROOT / "README.md"


class TestCommands:
    def test_a_wrong_verb_is_found(self, page: Path):
        assert "there is no verb 'lst'" in next(tables.wrong_commands(page, "```console\n$ tarviz lst a.tar\n```\n"))

    def test_a_wrong_flag_is_found(self, page: Path):
        assert "tarviz ls has no --membres" in next(tables.wrong_commands(page, "```console\n$ tarviz ls --membres a.tar | wc -l\n```\n"))

    def test_every_call_of_a_pipe_is_looked_at(self, page: Path):
        found = list(tables.wrong_commands(page, "```bash\ntarviz ls --json a.tar | tarviz verify --no-such -\n```\n"))

        assert 1 == len(found)

    def test_flags_of_other_programs_are_theirs(self, page: Path):
        assert [] == list(tables.wrong_commands(page, "```bash\ntarviz ls --json a.tar | jq --raw-output .\n```\n"))

    @pytest.mark.parametrize("cell", ["!tarviz first -w 'cls == 1' a.tar | head", "%tv first -w 'cls == 1' a.tar -o found"])
    def test_cells_are_looked_at(self, page: Path, cell: str):
        assert [f"tarviz first has no -w: {cell.lstrip('!').removeprefix('%tv ')}"] == [
            each.partition(": ")[2] for each in tables.wrong_commands(page, f"```python\nx = 1\n{cell}\n```\n")
        ]

    def test_python_blocks_are_left_alone(self, page: Path):
        assert [] == list(tables.wrong_commands(page, "```python\ntarviz lst\n```\n"))


class TestLinks:
    def test_a_dead_link_is_found(self, page: Path):
        assert ["README.md: no file at the link docs/nothing.md#a"] == list(tables.dead_links(page, "see [this](docs/nothing.md#a)"))

    def test_addresses_and_anchors_are_not_looked_up(self, page: Path):
        assert [] == list(tables.dead_links(page, "[a](https://host/x) [b](#there) [c](LICENSE)"))


class TestPlaces:
    def test_a_stale_table_is_replaced(self):
        text = "x\n<!-- table: extras -->\nold\n<!-- end of table -->\ny"

        new = tables.filled(text)

        assert "old" not in new
        assert "| `demo` | scikit-learn, keras, jax |" in new
        assert new == tables.filled(new)

    @pytest.mark.parametrize("name", [name for name in tables.TABLES if name != "figures"])
    def test_every_table_has_rows(self, name: str):
        assert 2 < tables.TABLES[name]().count("\n")
