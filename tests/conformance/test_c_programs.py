"""The C conformance programs: a test for each program, number of ranks and environment that `tests.toml` asks for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import cluster as clusters
import pytest
from conformance import supplement
from conformance.c_programs import Programs, Run, runs_of
from jobs import BIN, VARIANTS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.option
    known = clusters.DEVICES if option.cluster else VARIANTS
    names = list(known) if option.cluster and option.variants == "default" else option.variants.split(",")
    names = list(known) if names == ["all"] else names
    if unknown := [name for name in names if name not in known]:
        raise pytest.UsageError(f"there is no variant {unknown[0]}; there are {', '.join(known)}, and all")
    most = 2 * option.cluster if option.cluster else None
    is_translated = option.mpich or option.openmpi
    runs = runs_of({name: known[name] for name in names}, option.full, is_translated, most)
    chosen = [run for run in runs if not option.np or run.np in option.np]
    other = "mpich" * option.mpich + "openmpi" * option.openmpi
    kind = "-".join(filter(None, [other, option.sanitize, f"cluster{option.cluster or ''}" * bool(most)]))
    metafunc.parametrize("run", chosen, ids=["-".join(filter(None, [run.name, kind])) for run in chosen])


@pytest.fixture(scope="session")
def hosts(request: pytest.FixtureRequest) -> Iterator[clusters.Cluster]:
    """The cluster that --cluster asks for."""
    if reason := clusters.missing():
        pytest.skip(reason)
    with clusters.Cluster(request.config.option.cluster, clusters.ROOM) as made:
        yield made


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """The programs, compiled and run as the options ask for."""
    option = request.config.option
    if option.cluster:
        yield Programs.on(request.getfixturevalue("hosts"))
        return
    compiler, libraries = [option.mpicc], []
    if option.mpich:
        prefix = request.getfixturevalue("mpich").prefix
        compiler, libraries = ["cc", f"-I{prefix}/include"], [f"-L{prefix}/lib", "-lmpi"]
    if option.openmpi:
        theirs = option.openmpi_header or request.getfixturevalue("openmpi").prefix / "include"
        folder = supplement.write(tmp_path_factory.mktemp("header"), theirs, BIN.parent / "include/limosa/mpi.h")
        warnings = ["-Wno-stringop-overread", "-Wno-stringop-overflow", "-Wno-deprecated-declarations"]
        compiler = ["cc", f"-I{folder}", f"-I{theirs}", *warnings]
        # Open MPI's library lacks functions that the header has got.
        libraries = [str(BIN.parent / "lib/limosa/openmpi/libmpi.so.40")]
    if option.sanitize:
        compiler += [f"-fsanitize={option.sanitize}", "-fno-omit-frame-pointer"]
    with tempfile.TemporaryDirectory(prefix="limosa-messages-", dir=clusters.quick_folder()) as messages:
        yield Programs(
            tmp_path_factory.mktemp("programs"),
            messages=Path(messages),
            compiler=compiler,
            libraries=libraries,
            launcher=[option.mpiexec],
            patience=option.time_scale * (3 if option.sanitize else 1),
        )


def test_program(programs: Programs, run: Run, request: pytest.FixtureRequest) -> None:
    if run.standard and (request.config.option.mpich or request.config.option.openmpi):
        pytest.skip(run.standard)
    if "fabric" in run.name and (reason := clusters.missing_fabric()):
        pytest.skip(reason)
    programs.check(run)
