"""The wrong programs are told so, and the correct ones are left alone: `programs.py` says what the tables mean.

Every third case runs; all do with FULL=1, as in `make test-full`.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from programs import HERE, Case, Runner, cases

SHARE = 1 if os.environ.get("FULL") else 3
CHOSEN = [case for folder in ("wrong", "right") for case in cases(folder)[::SHARE]]


def parameter(case: Case):
    """A case that Limosa does not do yet must fail, until its mark is taken away."""
    marks = [pytest.mark.xfail(reason=case.missing, strict=True)] if case.missing else []
    return pytest.param(case, id=case.id, marks=marks)


@pytest.fixture(scope="session")
def runner(tmp_path_factory) -> Runner:
    made = Runner(tmp_path_factory.mktemp("programs"))
    made.build()
    return made


@pytest.fixture(scope="session")
def verdicts(request, runner):
    """The verdicts of the cases of this session: they are run ahead, some side by side, as most jobs only wait."""
    chosen = [item.callspec.params["case"] for item in request.session.items if "verdicts" in item.fixturenames]
    with ThreadPoolExecutor(max_workers=3) as pool:
        running: dict[Case, Future] = {case: pool.submit(runner.judge, case) for case in chosen}
        yield running
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", [parameter(case) for case in CHOSEN])
def test_program(case, verdicts):
    fault = verdicts[case].result().fault
    assert not fault, fault


@pytest.mark.parametrize("folder", ["wrong", "right"])
def test_the_tables_name_every_program(runner, folder):
    listed = {(case.theme, case.name) for case in cases(folder)}
    written = {
        (source.stem, name)
        for source in (HERE / folder).iterdir()
        if source.suffix in (".c", ".py")
        for name in runner.names(folder, source)
    }
    assert written == listed
