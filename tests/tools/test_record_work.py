"""Commands in private folders: what was ended begins nothing more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarviz.model.errors import DataError
from tarviz.tools.record_files import Collecting
from tarviz.tools.record_work import Commands


def test_a_thread_that_begins_after_the_end_starts_no_command(tmp_path: Path):
    work = Commands("touch begun", Collecting(), None, any_key=False, timeout=None, tmp=tmp_path)
    with work:
        work.kill()
        with pytest.raises(DataError, match="the work was stopped"):
            work._worker()

    assert [] == os.listdir(tmp_path)
