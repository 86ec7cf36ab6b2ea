"""Folders such as a measurement leaves."""

import made_records
import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def keep(tmp_path):
    """Write records into a folder as a measurement does; give the folder."""
    return lambda *records, name="kept": made_records.write(tmp_path / name, records)
