from __future__ import annotations

from tests.commands.conftest import bash as bash
from tests.commands.conftest import out as out
from tests.commands.conftest import plan as plan
from tests.commands.conftest import raw as raw
from tests.commands.conftest import tmp as tmp
