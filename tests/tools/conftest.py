from __future__ import annotations

from tests.commands.conftest import bash as bash
