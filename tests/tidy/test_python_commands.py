"""The description of the commands in Python, of which completion and man pages are made, is that of their parsers."""

import json
import runpy
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "python" / "tools" / "python_commands.py"


def test_the_description_is_that_of_the_parsers(monkeypatch, tmp_path) -> None:
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))  # It is the same for all users.
    tool = runpy.run_path(str(TOOL))
    now = tool["text"]()
    assert tool["FILE"].read_text(encoding="utf-8") == now, "run python/tools/python_commands.py"
    assert "--against" in json.dumps(json.loads(now)["bench"])
