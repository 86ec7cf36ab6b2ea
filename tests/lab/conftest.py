"""Folders such as a measurement leaves."""

import json

import pytest


@pytest.fixture
def keep(tmp_path):
    """Write records into a folder as a measurement does; give the folder."""

    def write(*records, name="kept"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        return folder

    return write
