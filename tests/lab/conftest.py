"""Folders such as a measurement leaves."""

import made_records
import pytest


@pytest.fixture
def keep(tmp_path):
    """Write records into a folder as a measurement does; give the folder."""
    return lambda *records, name="kept": made_records.write(tmp_path / name, records)
