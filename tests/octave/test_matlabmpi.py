"""MatlabMPI: programs written for it run under `limosa run` and by MPI_Run, with messages by memory and as files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import LIMOSA, OPTIONS, ROOT
from jobs import PATIENCE, Job, Outcome, until_it_waits

EXAMPLES = ROOT / "octave" / "examples" / "matlabmpi"
#: The programs, and on how many ranks each is run.
PROGRAMS = {
    "xbasic": 3,
    "basic": 2,
    "multi_basic": 2,
    "probe": 4,
    "broadcast": 3,
    "speedtest": 2,
    "basic_app": 4,
    "basic_app2": 4,
    "basic_app3": 4,
    "basic_app4": 4,
    "basic_app5": 4,
    "basic_app6": 4,
    "blurimage": 3,
}
TRANSPORTS = ("memory", "files")


def processes_in(folder: Path) -> list[int]:
    """The processes whose working directory is this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder and (entry / "stat").read_text().split(") ")[1][0] != "Z":
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class MatlabMPI:
    """Runs programs, in the two ways that there are, in a folder of their own."""

    def __init__(self, octave) -> None:
        self.octave = octave
        self.folder = octave.folder
        self.jobs: list[Job] = []

    def variables(self, transport: str) -> dict[str, str]:
        path = f"{LIMOSA.parent}:{os.environ['PATH']}"
        return {"PATH": path} | ({"MATMPI_COMM_DIR": str(self.folder)} if transport == "files" else {})

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(text)
        return file

    def script(self, text: str, n: int = 2, transport: str = "memory", **options) -> Outcome:
        """Run a script on n ranks of `limosa run`."""
        file = self.write("script.m", "MPI_Init; comm = MPI_COMM_WORLD; rank = MPI_Comm_rank(comm);\n" + text)
        return self.octave.run(file, n=n, paths=("matlabmpi",), env=self.variables(transport), **options)

    def start(self, text: str, transport: str = "memory", toolbox: str = "matlabmpi") -> Job:
        """Start an ordinary Octave that runs these statements."""
        added = subprocess.check_output([sys.executable, "-m", "limosa._octave", "--path", toolbox], text=True)
        file = self.write("session.m", f"sigterm_dumps_octave_core(false);{added}\n{text}\n")
        line = ["octave-cli", *OPTIONS, str(file)]
        self.jobs.append(Job(line, env=os.environ | self.variables(transport), cwd=self.folder))
        return self.jobs[-1]

    def session(self, text: str, transport: str = "memory", succeeds: bool = True, limit: float = 60.0, **options):
        """Run these statements in an ordinary Octave."""
        outcome = self.start(text, transport, **options).wait(limit)
        assert (outcome.code == 0) == succeeds, outcome.text
        return outcome

    def nothing_runs(self) -> bool:
        """No process of the job is left; ranks that have to notice something get half a minute, times `PATIENCE`."""
        for _ in range(300 * PATIENCE):
            if not processes_in(self.folder):
                return True
            time.sleep(0.1)
        return False

    def end(self) -> None:
        for job in self.jobs:
            job.kill()
        for pid in processes_in(self.folder):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def matlabmpi(octave):
    made = MatlabMPI(octave)
    yield made
    made.end()


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_under_the_launcher(matlabmpi, name, transport):
    shutil.copy(EXAMPLES / "synch_start.m", matlabmpi.folder)
    options = {"n": PROGRAMS[name], "paths": ("matlabmpi",), "env": matlabmpi.variables(transport)}
    outcome = matlabmpi.octave.run(EXAMPLES / f"{name}.m", **options)
    assert outcome.out.count("SUCCESS") == PROGRAMS[name]
    assert not list(matlabmpi.folder.glob("p*_p*_t*")), "messages were left"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_programs_run_one_after_the_other_in_one_interpreter(matlabmpi, transport):
    shutil.copytree(EXAMPLES, matlabmpi.folder, dirs_exist_ok=True)
    lines = []
    for name, n in PROGRAMS.items():
        lines.append(
            f"eval(MPI_Run('{name}', {n}, {{}}));\n"
            f"for k = 1:{n - 1}, while exist(sprintf('MatMPI/ended.%d', k)) != 2, pause(0.02); end\n"
            f"  printf('{name} %d: %s', k, fileread(sprintf('MatMPI/{name}.%d.out', k))); end\n"
            "MPI_Abort; MatMPI_Delete_all;"
        )
    outcome = matlabmpi.session("\n".join(lines), transport)
    assert outcome.out.count("SUCCESS") == sum(PROGRAMS.values()), outcome.text
    assert not (matlabmpi.folder / "MatMPI").exists()
    assert not list(matlabmpi.folder.glob("p*_p*_t*"))
    assert matlabmpi.nothing_runs()


def test_the_test_program_finds_success_in_the_output_of_all_ranks(matlabmpi):
    shutil.copytree(EXAMPLES, matlabmpi.folder, dirs_exist_ok=True)
    outcome = matlabmpi.session("unit_test", limit=120)
    assert "unit_test: SUCCESS" in outcome.out, outcome.text
    assert matlabmpi.nothing_runs()


# --- messages ---------------------------------------------------------------------------------------------------------

VALUES = """
values = {pi, single(2.5), 1 + 2i, int8(-5), uint8(200), int64(9007199254740993), uint64(18446744073709551615), ...
          true, 'text', '', [], zeros(0, 3), reshape(1:24, 3, 4, 2), sparse([1 0; 0 2.5]), ...
          sparse([true false]), {}, {1, {'two'}}, struct('a', {1, 2}), struct(), 1:5, eye(3), ['ab'; 'cd'], ...
          int16([1 2; 3 4]), complex(single(1), 2), NaN, Inf};
"""


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_values_of_all_classes_travel(matlabmpi, transport):
    matlabmpi.script(
        VALUES
        + """
        if rank == 0
          for k = 1:numel(values), MPI_Send(1, k, comm, values{k}); end
          MPI_Send(1, 'all', comm, values{:});
          MPI_Send(1, 'none', comm);
          MPI_Send(1, 'function', comm, @(x) x + pi);
        else
          for k = 1:numel(values)
            got = MPI_Recv(0, k, comm);
            assert(class(got), class(values{k}));
            assert(size(got), size(values{k}));
            assert(isequaln(got, values{k}));
            assert(issparse(got), issparse(values{k}));
          end
          all_of_them = cell(1, numel(values));
          [all_of_them{:}] = MPI_Recv(0, 'all', comm);
          assert(isequaln(all_of_them, values));
          MPI_Recv(0, 'none', comm);
          f = MPI_Recv(0, 'function', comm);
          assert(f(1), 1 + pi);
        end
        """,
        transport=transport,
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_tags_are_compared_as_text(matlabmpi, transport):
    matlabmpi.script(
        """
        tags = {0, 7, '8', 99999, 100045, 2^31, 1e9 + 7, -3, 2.5, 'tag-3', 'any text, with blanks', '007', ''};
        if rank == 0
          for k = numel(tags):-1:1, MPI_Send(1, tags{k}, comm, k); end
        else
          for k = 1:numel(tags), assert(MPI_Recv(0, tags{k}, comm), k); end
        end
        MPI_Bcast(1, 'received', comm);
        if rank == 0
          MPI_Send(1, 7, comm, 'seven'); MPI_Send(1, '8', comm, 'eight');
        else
          assert(MPI_Recv(0, '7', comm), 'seven'); assert(MPI_Recv(0, 8, comm), 'eight');
        end
        """,
        transport=transport,
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_sends_wait_for_nobody(matlabmpi, transport):
    matlabmpi.script(
        """
        other = 1 - rank;
        for k = 1:20
          MPI_Send(other, k, comm, k * ones(1, 100000));
          MPI_Send(rank, 1000 + k, comm, k);
        end
        for k = 1:20
          assert(MPI_Recv(other, k, comm), k * ones(1, 100000));
          assert(MPI_Recv(rank, 1000 + k, comm), k);
        end
        MPI_Send(other, 'kept', comm, ones(1, 1e6));
        MPI_Finalize;
        """,
        transport=transport,
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_messages_that_an_earlier_run_has_kept_or_not_received_are_not_received(matlabmpi, transport):
    (matlabmpi.folder / "here").mkdir()
    for number in (1, 2):
        matlabmpi.script(
            f"""
            kept = MatMPI_Save_messages(comm, 1); here = MatMPI_Comm_dir(comm, 'here'); wanted = {number};
            if rank == 0
              MPI_Recv(1, 'none has come', comm); MPI_Send(1, 1, kept, wanted);
              MPI_Send(1, 'text', here, wanted); MPI_Bcast(0, 2, kept, wanted); MPI_Send(1, wanted + 9, here, 1);
            else
              [~, ~, texts] = MPI_Probe('*', '*', here); assert(isempty(texts) && isempty(MPI_Probe(0, 1, kept)));
              MPI_Send(0, 'none has come', comm);
              assert([MPI_Recv(0, 1, kept), MPI_Recv(0, 'text', here), MPI_Bcast(0, 2, kept)], [1 1 1] * wanted);
            end
            """,
            transport=transport,
        )


def test_a_script_that_ends_its_ranks_itself_goes_on_after_mpi_finalize(matlabmpi):
    tail = "MPI_Finalize;\ndisp(['SUCCESS ' num2str(rank)]);\n"
    outcome = matlabmpi.script(f"{tail}if (rank ~= MatMPI_Host_rank(comm))\n  exit;\nend\ndisp('host');")
    assert sorted(outcome.out.splitlines()) == ["SUCCESS 0", "SUCCESS 1", "host"]
    assert matlabmpi.script(f"{tail}% no exit\n").out == "SUCCESS 0\n"


def test_what_was_sent_may_change_at_once(matlabmpi):
    matlabmpi.script(
        """
        if rank == 0
          x = ones(1, 1e6);
          for k = 1:5, x(:) = k; MPI_Send(1, 3, comm, x); end
          x(:) = 0;
        else
          pause(0.3);
          for k = 1:5, assert(MPI_Recv(0, 3, comm), k * ones(1, 1e6)); end
        end
        """
    )


def test_a_rank_starts_no_other_job(matlabmpi):
    outcome = matlabmpi.script("MPI_Run('script', 2, {});", n=1, succeeds=False)
    assert "MPI_Run: this Octave is a rank of a job already" in outcome.err


def test_a_rank_that_has_finished_still_delivers(matlabmpi):
    matlabmpi.script(
        """
        if rank == 1, MPI_Send(0, 1, comm, ones(1, 1e6)); MPI_Finalize; end
        pause(0.5);
        assert(MPI_Recv(1, 1, comm), ones(1, 1e6));
        """
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_probe_lists_what_waits(matlabmpi, transport):
    matlabmpi.script(
        """
        if rank > 0
          MPI_Send(0, 10 * rank, comm, 'number'); MPI_Send(0, 'tag-1', comm, 'text'); MPI_Send(0, 'go', comm, 1);
        else
          MPI_Recv(1, 'go', comm); MPI_Recv(2, 'go', comm);
          [ranks, tags, texts] = MPI_Probe('*', '*', comm);
          assert(ranks, [1; 1; 2; 2]);
          assert(tags, [10; NaN; 20; NaN]);
          assert(texts, {'10'; 'tag-1'; '20'; 'tag-1'});
          [ranks, tags] = MPI_Probe('*', '*', comm);
          assert([ranks tags], [1 10; 2 20]);
          [ranks, tags, texts] = MPI_Probe(2, 'tag-*', comm);
          assert({ranks, texts}, {2, {'tag-1'}});
          assert(MPI_Probe('*', 20, comm), 2);
          assert(MPI_Probe('*', '[12]?', comm), [1; 2]);
          assert(isempty(MPI_Probe(1, 20, comm)));
          assert(MPI_Recv(2, 20, comm), 'number');
          assert(isempty(MPI_Probe('*', 20, comm)));
          MPI_Recv(1, 10, comm); MPI_Recv(1, 'tag-1', comm); MPI_Recv(2, 'tag-1', comm);
        end
        """,
        n=3,
        transport=transport,
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_broadcasts_arrive_as_messages(matlabmpi, transport):
    matlabmpi.script(
        """
        [a, b] = MPI_Bcast(1, 'b', comm, rank, {'of', rank});
        assert({a, b}, {1, {'of', 1}});
        if rank == 0
          [a, b] = MPI_Bcast(0, 5, comm, 'first', 2);
        elseif rank == 1
          [a, b] = MPI_Recv(0, 5, comm);
        else
          ranks = [];
          while isempty(ranks), [ranks, tags] = MPI_Probe('*', '*', comm); end
          assert([ranks tags], [0 5]);
          [a, b] = MPI_Bcast(0, 5, comm);
        end
        assert({a, b}, {'first', 2});
        if rank != 1
          assert(MPI_Mcast(2, [0 2], 6, comm, rank), 2);
        end
        assert(isempty(MPI_Probe('*', '*', comm)));
        """,
        n=3,
        transport=transport,
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_broadcast_ends_when_all_have_it(matlabmpi, transport):
    matlabmpi.script(
        """
        if rank == 0
          MPI_Bcast(0, 1, comm, 'x');
          assert(exist('received', 'file'), 2);
        else
          pause(0.5);
          fclose(fopen('received', 'w'));
          MPI_Recv(0, 1, comm);
        end
        """,
        transport=transport,
    )


# --- files ------------------------------------------------------------------------------------------------------------


def test_saved_messages_stay(matlabmpi):
    matlabmpi.script(
        """
        comm = MatMPI_Save_messages(comm, 1);
        if rank == 0
          MPI_Send(1, 3, comm, 'kept', 1:3);
          MPI_Bcast(0, 4, comm, 'not awaited');
        else
          for k = 1:2
            [a, b] = MPI_Recv(0, 3, comm);
            assert({a, b}, {'kept', 1:3});
          end
          MPI_Recv(0, 4, comm);
          [ranks, tags] = MPI_Probe('*', '*', comm);
          assert(tags, [3; 4]);
        end
        """
    )
    names = sorted(file.name for file in (matlabmpi.folder / "MatMPI").iterdir())
    assert names == [
        "p0_p0_t4_buffer.mat",
        "p0_p1_t3_buffer.mat",
        "p0_p1_t3_lock.mat",
        "p0_p1_t4_buffer.mat",
        "p0_p1_t4_lock.mat",
    ]
    assert (matlabmpi.folder / "MatMPI/p0_p1_t3_buffer.mat").read_bytes().startswith(b"MATLAB 5.0")


def test_plain_files_are_messages_and_messages_are_plain_files(matlabmpi):
    (matlabmpi.folder / "here").mkdir()
    matlabmpi.write(
        "original.m",
        """
        varargin = {'from a file', [1 2 3]};
        save('-v6', 'here/p1_p0_ttag-5_buffer.mat', 'varargin');
        fclose(fopen('here/p1_p0_ttag-5_lock.mat', 'w'));
        while exist('here/p0_p1_t6_lock.mat', 'file') != 2, pause(0.02); end
        clear varargin
        load('here/p0_p1_t6_buffer.mat');
        assert(varargin, {'to a file', struct('a', {{1}})});
        delete('here/p0_p1_t6_buffer.mat'); delete('here/p0_p1_t6_lock.mat');
        """,
    )
    matlabmpi.script(
        """
        comm = MatMPI_Comm_dir(comm, 'here');
        assert(MatMPI_Buffer_file(0, 1, 6, comm), 'here/p0_p1_t6_buffer.mat');
        assert(MatMPI_Lock_file(0, 1, 'x', comm), 'here/p0_p1_tx_lock.mat');
        if rank == 0
          MPI_Send(1, 6, comm, 'to a file', struct('a', {{1}}));
          [a, b] = MPI_Recv(1, 'tag-5', comm);
          assert({a, b}, {'from a file', [1 2 3]});
        else
          source('original.m');
        end
        """
    )
    assert not list((matlabmpi.folder / "here").iterdir())


# --- MPI_Run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rank_0_keeps_its_workspace(matlabmpi, transport):
    matlabmpi.write(
        "prog.m",
        """
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) == 0, found = MPI_Recv(1, 1, comm) + given;
        else, disp('out of rank 1'); MPI_Send(0, 1, comm, 41); end
        MPI_Finalize;
        after = true;
        """,
    )
    outcome = matlabmpi.session(
        """
        given = 1;
        text = MPI_Run('prog', 2, {});
        assert(ischar(text));
        eval(text);
        assert(found, 42);
        assert(after);
        while exist('MatMPI/ended.1') != 2, pause(0.02); end
        assert(! isempty(strfind(fileread('MatMPI/prog.1.out'), 'out of rank 1')));
        assert(numel(glob('MatMPI/pid.*')), 1);
        assert(MPI_COMM_WORLD.size, 2);
        try
          MPI_Run('prog', 2, {});
          error('MPI_Run has ignored the folder');
        catch e
          disp(e.message);
        end
        MatMPI_Delete_all;
        found = 0;
        eval(MPI_Run('prog', 2, {}));
        assert(found, 42);
        MPI_Abort; MatMPI_Delete_all; MPI_Abort; MatMPI_Delete_all;
        """,
        transport,
    )
    assert "the folder MatMPI of an earlier run is there" in outcome.out
    assert "MPI_Abort: there are no ranks to end" in outcome.out
    assert "MatMPI_Delete_all: there is nothing to remove" in outcome.out
    assert matlabmpi.nothing_runs()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_ranks_in_the_background_know_the_functions_of_the_interpreter(matlabmpi, transport):
    (matlabmpi.folder / "its library").mkdir()
    matlabmpi.write("its library/twice.m", "function y = twice(x), y = 2 * x; end\n")
    matlabmpi.write(
        "prog.m",
        """
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) == 0, found = MPI_Recv(1, 1, comm); else, MPI_Send(0, 1, comm, twice(21)); end
        MPI_Finalize;
        """,
    )
    matlabmpi.session("addpath('its library'); eval(MPI_Run('prog', 2, {})); assert(found, 42);", transport)
    assert matlabmpi.nothing_runs()


def test_programs_of_pmatlab_run_by_it(matlabmpi):
    matlabmpi.write(
        "prog.m",
        """
        X = ones(4, 8, map([1 Np], {}, 0:Np-1));
        Y = agg(X + X);
        if Pid == 0, SendMsg(1, 5, 'text', 3); elseif Pid == 1, [a, b] = RecvMsg(0, 5); disp({a, b}); end
        """,
    )
    matlabmpi.session(
        """
        for n = [3 2], eval(pRUN('prog', n, {})); assert(Y, 2 * ones(4, 8)); end
        MPI_Abort; MatMPI_Delete_all
        """,
        toolbox="pmatlab",
    )
    assert matlabmpi.nothing_runs()


def test_machines_have_a_grammar(matlabmpi):
    matlabmpi.session(
        """
        h = gethostname; mkdir MatMPI; mkdir d;
        cases = {{}, 0, 0, [1 1 1 1]; {h}, 0, 0, [1 1 1 1]; {'localhost'}, 0, 0, [1 1 1 1]; {[h '&']}, -1, 0, [1 1 1 1];
                 {[h ':unix']}, 0, 0, [1 1 1 1]; {[h ':d']}, 0, 1, [1 1 1 1]; {[h '&:unix:d']}, -1, 1, [1 1 1 1];
                 {'other', h}, -1, 1, [1 1 2 2]; {h, 'other:/far', 'third:unix'}, 0, 1, [1 1 2 3]};
        for k = 1:rows(cases)
          comm = MatMPI_Comm_init(4, cases{k, 1});
          assert({comm.host_rank, double(comm.by_files), comm.machine_id}, cases(k, 2:4));
          assert(MatMPI_Host_rank(comm), comm.host_rank);
        end
        assert(comm.machine_db.dir, {[pwd '/MatMPI'], '/far', [pwd '/MatMPI']});
        assert(comm.machine_db.machine, {h, 'other', 'third'});
        assert([comm.machine_db.id_start; comm.machine_db.id_stop], [1 3 4; 2 3 4]);
        assert({comm.rank, comm.size, comm.group, comm.save_message_flag}, {-1, 4, 0:3, 0});
        comm = MatMPI_Comm_init(1, {h, 'other'});
        assert(comm.machine_db.n_machine, 1);
        """
    )


def test_ranks_on_other_machines_are_started_by_the_remote_launcher(matlabmpi):
    # What stands for ssh drops the name of the host and its options.
    matlabmpi.write("far", '#!/bin/sh\necho "$1 $2" >>hosts\nshift 2\nexec sh -c "$*"\n').chmod(0o755)
    matlabmpi.write(
        "MatMPI_Comm_settings.m",
        f"""function s = MatMPI_Comm_settings()
          s.type = 'unix'; s.matlab_command = 'octave-cli --traditional --norc --quiet';
          s.remote_launch = ' {matlabmpi.folder}/far '; s.remote_flags = ' -n '; s.pc_unix_dir_map = {{'Z:', '/'}};
        end
        """,
    )
    shutil.copy(EXAMPLES / "basic_app2.m", matlabmpi.folder)
    outcome = matlabmpi.session(
        """
        eval(MPI_Run('basic_app2', 4, {gethostname, 'far1', 'far2'}));
        for k = 1:3
          while exist(sprintf('MatMPI/ended.%d', k)) != 2, pause(0.02); end
          type(sprintf('MatMPI/basic_app2.%d.out', k));
        end
        MPI_Abort; MatMPI_Delete_all
        """
    )
    assert outcome.out.count("SUCCESS") == 4, outcome.text
    assert set((matlabmpi.folder / "hosts").read_text().split("\n")) >= {"far1 -n", "far2 -n"}
    assert matlabmpi.nothing_runs()


# --- what goes wrong --------------------------------------------------------------------------------------------------

MISTAKES = {
    "MPI_Send(2, 1, comm, 1)": "MPI_Send: dest is 2; the communicator has the ranks 0 to 1",
    "MPI_Send(0.5, 1, comm, 1)": "MPI_Send: dest must be one whole number",
    "MPI_Send(1, {1}, comm, 1)": "a tag is a number or a text, not a value of class cell",
    "MPI_Send(1, 1)": "this is how to call it: MPI_Send (dest, tag, comm, value, ...)",
    "MPI_Send(1, 1, 5, 1)": "MPI_Send: the communicator is no communicator but of class double",
    "MPI_Send(1, 1, struct('rank', 0), 1)": "MPI_Send: the communicator has no field size",
    "MPI_Recv(-1, 1, comm)": "MPI_Recv: source is -1",
    "MPI_Recv(rank, 1, comm)": "waits for a message from itself with tag 1, which it has not sent",
    "MPI_Send(rank, 1, comm, 5); [a, b] = MPI_Recv(rank, 1, comm)": "2 values were asked for, but the message",
    "MPI_Probe(9, '*', comm)": "MPI_Probe: source is 9",
    "MPI_Mcast(0, {1}, 1, comm, 1)": "MPI_Mcast: the destinations are ranks, not of class cell",
    "MPI_Send(1, 'a/b', MatMPI_Comm_dir(comm, '.'), 1)": 'cannot hold "/"',
    "MPI_Send(1, 1, MatMPI_Comm_dir(comm, 'nowhere'), 1)": "there is no folder nowhere for the message",
    "MatMPI_Save_messages(comm, 'yes')": "the flag is 0 or 1",
    "MPI_cc('prog')": "Octave has no compiler (mcc)",
}


def test_mistakes_in_calls_are_errors(matlabmpi):
    tried = "".join(
        f"""
        try
          {statement};
          printf('no error: %s\\n', '{statement.replace("'", "''")}');
        catch e
          disp(e.message);
        end"""
        for statement in MISTAKES
    )
    outcome = matlabmpi.script(f"if rank == 0 {tried}\nend")
    assert "no error" not in outcome.out
    for said in MISTAKES.values():
        assert said in outcome.out, f"{said}\nis not in\n{outcome.text}"


RUN_MISTAKES = {
    "MPI_Run('nothing', 2, {})": "there is no script nothing.m",
    "MPI_Run('prog.m', 2, {})": "prog.m is no name of a script",
    "MPI_Run('prog', 0, {})": "the number of ranks is a whole number from 1 on",
    "MPI_Run('prog', 2, 'grid')": "the machines are a cell of names",
    "MPI_Run('prog', 2, {5})": "the machines are a cell of names, not of class cell",
    "MPI_Run('prog', 2, {':x'})": ":x is no machine; the form is",
    "MPI_Run('prog', 2, {[gethostname ':nowhere']})": "nowhere for messages; make it first",
    "MPI_Run('prog', 2, {'a:pc'})": "ranks on Windows cannot be started",
    "MPI_Run('broken', 2, {})": "broken.m cannot be run: parse error",
    "MPI_Run('compiled prog.exe', 2, {})": "Octave has no compiler",
    "MPI_Run('prog')": "this is how to call it",
    "setenv('PATH', '/bin'); MPI_Run('prog', 2, {})": "there is no program limosa in PATH",
    "comm = struct('rank', 0, 'size', 1, 'by_files', false); MPI_Send(0, 1, comm, 1)": "no job is running",
}


def test_mistakes_in_starting_are_errors_and_leave_nothing(matlabmpi):
    matlabmpi.write("prog.m", "MPI_Init; MPI_Finalize;")
    matlabmpi.write("broken.m", "MPI_Init; x = (1;\n")
    tried = "".join(f"try\n{each}; disp('no error');\ncatch e\ndisp(e.message);\nend\n" for each in RUN_MISTAKES)
    outcome = matlabmpi.session(tried)
    assert "no error" not in outcome.out
    for said in RUN_MISTAKES.values():
        assert said in outcome.out, f"{said}\nis not in\n{outcome.text}"
    assert not (matlabmpi.folder / "MatMPI").exists()
    assert matlabmpi.nothing_runs()


#: What rank 1 does while the others wait for it, and what rank 0 then reads.
ENDS = {
    "error('of the script')": "rank 1 has failed: of the script",
    "exit(3)": "rank 1 has",
    "undefined_name": "rank 1 has failed: 'undefined_name' undefined",
    "kill(getpid, 9); pause(60)": "rank 1",
    "MPI_Send(0, 8, comm, 1)": "rank 1 has",
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("what", ENDS)
def test_the_end_of_a_rank_ends_the_wait_for_it(matlabmpi, what, transport):
    matlabmpi.write(
        "prog.m",
        f"""
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) == 1, {what};
        else, MPI_Recv(1, 7, comm); end
        MPI_Finalize;
        """,
    )
    outcome = matlabmpi.session(
        """
        try
          eval(MPI_Run('prog', 3, {}));
          disp('no error');
        catch e
          printf('caught: %s\\n', e.message);
        end
        MPI_Abort; MatMPI_Delete_all
        """,
        transport,
    )
    assert "caught: MPI_Recv: " in outcome.out, outcome.text
    assert ENDS[what] in outcome.out, outcome.text
    assert not (matlabmpi.folder / "MatMPI").exists()
    assert matlabmpi.nothing_runs()
    assert not (matlabmpi.folder / "octave-workspace").exists()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("what", ENDS)
def test_the_end_of_a_rank_ends_a_job_of_the_launcher(matlabmpi, what, transport):
    text = f"if rank == 1, {what}; MPI_Finalize; end\nMPI_Recv(1, 7, comm);"
    outcome = matlabmpi.script(text, n=3, transport=transport, succeeds=False)
    assert outcome.code != 0
    assert "rank 1" in outcome.err, outcome.text
    assert matlabmpi.nothing_runs()


@pytest.mark.parametrize("what", ENDS)
def test_the_end_of_a_rank_ends_the_wait_for_a_file_of_it(matlabmpi, what):
    (matlabmpi.folder / "files").mkdir()
    matlabmpi.write(
        "prog.m",
        f"""
        MPI_Init; comm = MatMPI_Comm_dir(MPI_COMM_WORLD, 'files');
        if MPI_Comm_rank(comm) == 1, {what};
        else, MPI_Recv(1, 7, comm); end
        MPI_Finalize;
        """,
    )
    outcome = matlabmpi.session("eval(MPI_Run('prog', 3, {}));", succeeds=False)
    assert "rank 1" in outcome.err, outcome.text
    assert matlabmpi.nothing_runs()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_error_of_rank_0_ends_those_that_wait_for_it(matlabmpi, transport):
    matlabmpi.write(
        "prog.m",
        """
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) == 0, error('of rank 0');
        else, MPI_Recv(0, 7, comm); end
        """,
    )
    outcome = matlabmpi.session("eval(MPI_Run('prog', 3, {}));", transport, succeeds=False)
    assert "of rank 0" in outcome.err
    assert matlabmpi.nothing_runs()
    texts = [(matlabmpi.folder / f"MatMPI/prog.{rank}.out").read_text() for rank in (1, 2)]
    assert any("rank 0 has" in text for text in texts), texts


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_death_of_the_interpreter_ends_those_that_wait_for_it(matlabmpi, transport):
    matlabmpi.write(
        "prog.m",
        """
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) == 0, MPI_Recv(1, 1, comm); puts("ready\\n"); fflush(stdout); pause(60);
        else, MPI_Send(0, 1, comm, 1); MPI_Recv(0, 7, comm); end
        """,
    )
    job = matlabmpi.start("eval(MPI_Run('prog', 3, {}));", transport)
    for line in job.process.stdout:
        if line == "ready\n":
            break
    job.process.kill()
    job.process.wait()
    assert matlabmpi.nothing_runs()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_abort_ends_ranks_that_go_on_for_ever(matlabmpi, transport):
    matlabmpi.write(
        "prog.m",
        """
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) > 0, MPI_Send(0, 1, comm, 1); while true, pause(0.1); end, end
        for k = 1:2, MPI_Recv(k, 1, comm); end
        MPI_Finalize;
        """,
    )
    matlabmpi.session("eval(MPI_Run('prog', 3, {})); MPI_Abort; MatMPI_Delete_all", transport)
    assert not (matlabmpi.folder / "MatMPI").exists()
    assert matlabmpi.nothing_runs()


def test_ranks_that_wait_for_each_other_are_reported(matlabmpi):
    file = matlabmpi.write("hang.m", "MPI_Init; comm = MPI_COMM_WORLD; MPI_Recv(1 - MPI_Comm_rank(comm), 5, comm);")
    env = matlabmpi.variables("memory") | {
        "LIMOSA_ON_HANG": "abort",
        "LIMOSA_HANG_AFTER": "0.3",
        "LIMOSA_HANG_GRACE": "1",
    }
    outcome = matlabmpi.octave.run(file, n=2, paths=("matlabmpi",), env=env, succeeds=False)
    assert outcome.code == 86
    assert "hang" in outcome.err
    assert "ranks 0, 1 wait for each other in a circle" in outcome.err


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_interrupt_ends_a_wait(matlabmpi, transport):
    matlabmpi.write(
        "prog.m",
        """
        MPI_Init; comm = MPI_COMM_WORLD;
        if MPI_Comm_rank(comm) == 0, MPI_Recv(1, 1, comm); puts("ready\\n"); fflush(stdout); MPI_Recv(1, 2, comm);
        else, MPI_Send(0, 1, comm, 1); MPI_Recv(0, 7, comm); end
        """,
    )
    job = matlabmpi.start("eval(MPI_Run('prog', 2, {}));", transport)
    for line in job.process.stdout:
        if line == "ready\n":
            break
    until_it_waits(job.process.pid)
    job.process.send_signal(signal.SIGINT)
    assert job.wait(20).code != 0
    assert matlabmpi.nothing_runs()


def test_an_unknown_toolbox_is_an_error(modules):
    line = [sys.executable, "-m", "limosa._octave", "--path", "nothing"]
    asked = subprocess.run(line, capture_output=True, text=True)
    assert asked.returncode == 3
    assert "there is no toolbox 'nothing'; there are matlabmpi, mpi, mpitb, pmatlab" in asked.stderr


def test_a_tag_that_does_not_match_is_an_error_once_the_sender_has_finished(matlabmpi):
    outcome = matlabmpi.script(
        "if rank == 1, MPI_Send(0, 'eight', comm, 1); MPI_Finalize; end; MPI_Recv(1, 7, comm);", succeeds=False
    )
    assert "MPI_Recv: rank 1 has finished and sent no message with tag 7 to rank 0" in outcome.err
    assert "was not received has the tags: eight" in outcome.err


def test_the_study_compares_four_ways(matlabmpi):
    study = ROOT / "lab" / "limosa_lab" / "octave_study" / "matlabmpi.m"
    env = {"MATLABMPI_STUDY_BYTES": "8 4096", "MATLABMPI_STUDY_ROUNDS": "1", "MATLABMPI_STUDY_FOLDER": "."}
    outcome = matlabmpi.octave.run(study, n=2, paths=("matlabmpi",), env=matlabmpi.variables("memory") | env)
    rows = [line.split() for line in outcome.out.splitlines()]
    ways = ("memory", "files", "original", "bare")
    assert [row[:2] for row in rows] == [[way, n] for n in ("8", "4096") for way in ways]
    assert all(float(row[2]) > 0 for row in rows)
    assert not [file for file in matlabmpi.folder.iterdir() if file.is_dir()], "the folder for files was left"


def test_abort_ends_a_job_of_the_launcher(matlabmpi):
    outcome = matlabmpi.script("if rank == 0, MPI_Abort; end; MPI_Recv(0, 1, comm);", succeeds=False)
    assert outcome.code != 0
    assert matlabmpi.nothing_runs()
