"""The licences of linked crates that the wheel carries are those of the crates that Cargo.lock names."""

import runpy
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "python" / "tools" / "notices.py"


def test_notices_are_those_of_the_linked_crates() -> None:
    tool = runpy.run_path(str(TOOL))
    assert tool["FILE"].read_text(encoding="utf-8") == tool["text"](), "run python/tools/notices.py"
