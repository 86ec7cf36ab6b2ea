"""Jobs over two hosts that ssh connects, with a shared folder for the messages between them."""

from __future__ import annotations

import json
import re
import signal
import subprocess

import pytest
from cluster import Cluster, Host, environment
from jobs import PATIENCE
from runner import BIN, Runner, wait_until

#: Has a host count as lost sooner than a user would want, and after how many seconds it does.
SOON = {"LIMOSA_HOST_LIMIT": "6"}
SILENCE = 10


def test_ranks_are_where_the_list_says(run: Runner) -> None:
    done = run("-l", "-host", "node1:2,node2:2", "sh", "-c", "echo $LIMOSA_RANK of $LIMOSA_SIZE on $(hostname)").wait(
        20
    )
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == [f"[{rank}] {rank} of 4 on node{1 + rank // 2}" for rank in range(4)]
    run.nothing_stays()


def test_a_host_file_lists_hosts_and_the_launcher_may_be_on_none_of_them(run: Runner) -> None:
    listed = run.cluster.shared / "hosts"
    listed.write_text("# two ranks each\nnode2 slots=2\n")
    done = run("-hostfile", listed, "hostname").wait(20)
    assert (done.code, done.out) == (0, "node2\nnode2\n"), done.err


def test_the_map_shows_hosts_and_devices(run: Runner) -> None:
    done = run("--show-map", "-host", "node1:1,node2:1", "true").wait(20)
    folder = run.cluster.shared / "messages"
    says = [f"limosa: rank {rank} on node{rank + 1}: shm on this host, file:{folder} to others" for rank in range(2)]
    assert (done.code, done.err.splitlines()) == (0, says)


def test_the_devices_inside_and_between_hosts_are_named_together(run: Runner, program) -> None:
    folder = run.cluster.shared / "messages"
    options = ["--show-map", "--device", f"shm,file:{folder}"]
    done = run(*options, "-host", "node1:2,node2:2", program("around")).wait(30)
    says = [
        f"limosa: rank {rank} on node{rank // 2 + 1}: shm on this host, file:{folder} to others" for rank in range(4)
    ]
    assert (done.code, done.err.splitlines()) == (0, says)
    assert done.out == "4 ranks on 2 hosts: all data came\n"
    # On one host there is no host to exchange files with.
    done = run(*options, "-n", "2", program("around")).wait(30)
    assert (done.code, done.err.splitlines()) == (0, [f"limosa: rank {rank} on node1: shm" for rank in range(2)])
    run.nothing_stays()


def test_a_folder_that_the_hosts_do_not_share_is_refused(run: Runner) -> None:
    # Each host has a /tmp of its own.
    done = run("--device", "file:/tmp", "-host", "node1:1,node2:1", "sleep", "1000").wait(30)
    assert done.code != 0
    assert "this host does not share the folder /tmp with the launcher's host" in done.err and "(node2)" in done.err
    run.nothing_stays()


def test_a_folder_in_a_folder_that_is_not_there_is_not_made(run: Runner) -> None:
    missing = run.cluster.shared / "tpyo"
    done = run("--device", f"file:{missing}/deep", "-host", "node1:1,node2:1", "true").wait(20)
    assert done.code != 0 and f"there is no folder {missing}" in done.err, done.err
    assert not missing.exists()


@pytest.mark.parametrize(
    ("variables", "chosen"), [({}, "fabric"), ({"LIMOSA_FABRIC_LIBRARY": "/no/such/library"}, "file:local")]
)
def test_without_a_device_the_launcher_chooses_one(
    run: Runner, program, request: pytest.FixtureRequest, variables: dict[str, str], chosen: str
) -> None:
    if chosen == "fabric":
        request.getfixturevalue("needs_fabric")
    command = [BIN / "limosa", "run", "--show-map", "-host", "node1:2,node2:2", program("around")]
    env = {name: value for name, value in environment().items() if name not in ("LIMOSA_DEVICE", "TMPDIR")}
    done = run.cluster.hosts[0].run(*command, env={**env, **variables}, timeout=300)
    assert (done.returncode, done.stdout) == (0, "4 ranks on 2 hosts: all data came\n"), done.stderr
    assert done.stderr.count(f"shm on this host, {chosen} to others") == 4


def test_ranks_are_bound_to_cores_of_their_host(run: Runner) -> None:
    script = "echo $LIMOSA_RANK $(taskset -cp $$ | sed 's/.*: //')"
    options = ["--bind-to", "core", "--report-bindings", "-host", "node1:1,node2:2"]
    done = run(*options, "sh", "-c", script).wait(20)
    assert done.code == 0, done.err
    bound = {line.split()[0]: line.split()[1] for line in done.out.splitlines()}
    assert sorted(bound) == ["0", "1", "2"]
    said = {}
    for line in done.err.splitlines():
        found = re.fullmatch(r"limosa: rank (\d) on (node\d) is bound to processors? ([\d, ]+)", line)
        assert found, line
        said[found[1]] = (found[2], processors(found[3]))
    assert said == {rank: ("node1" if rank == "0" else "node2", processors(bound[rank])) for rank in bound}
    # Each host deals out its own cores from the first one on.
    assert bound["0"] == bound["1"]


def processors(text: str) -> set[int]:
    """The numbers in a list such as `0-2,5`."""
    ends = [[int(end) for end in part.split("-")] for part in text.replace(" ", "").split(",")]
    return {number for part in ends for number in range(part[0], part[-1] + 1)}


def test_programs_have_the_variables_and_the_folder_of_the_launcher(run: Runner) -> None:
    script = "echo $COLOUR $SHAPE $(pwd)"
    options = ["-x", "SHAPE=round", "-host", "node2:1"]
    done = run(*options, "sh", "-c", script, variables={"COLOUR": "red"}).wait(20)
    assert (done.code, done.out) == (0, f"red round {run.cluster.shared}\n"), done.err


def test_input_reaches_a_rank_on_another_host(run: Runner) -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    command = ["-host", "node2:1", "sh", "-c", "sleep 0.2; cat"]
    job = run(*command, stdin=subprocess.PIPE)
    out, err = job.process.communicate(text, timeout=30 * PATIENCE)
    assert (job.process.returncode, out, err) == (0, text, "")


def test_ranks_exchange_messages_inside_and_between_hosts(run: Runner, program) -> None:
    done = run("-host", "node1:2,node2:2", program("around")).wait(30)
    assert (done.code, done.err) == (0, "")
    assert done.out == "4 ranks on 2 hosts: all data came\n"
    run.nothing_stays()


@pytest.mark.parametrize("root", [0, 2])
def test_processes_are_spawned_where_there_is_room_and_then_in_turn(run: Runner, program, root: int) -> None:
    done = run("-n", "3", "-host", "node1:2,node2:3", program("later"), "spawn", root, "4").wait(40)
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == ["3 and 4: node2 node2 node1 node2", "room for 5"]
    run.nothing_stays()


@pytest.mark.parametrize("host", ["node1", "node2"])
def test_a_spawn_names_its_host(run: Runner, program, host: str) -> None:
    done = run("-host", "node1:1,node2:1", program("later"), "spawn", "1", "2", host).wait(40)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines().count(f"2 and 2: {host} {host}") == 2
    run.nothing_stays()


@pytest.mark.parametrize("host", ["node1", "node2"])
def test_a_receive_from_a_spawned_process_that_has_left_is_reported(
    run: Runner, program, device: str, host: str
) -> None:
    variables = {"LIMOSA_DEVICE": "fabric"} if device == "fabric" else {}
    words = ["--on-hang=abort", "-host", "node1,node2", program("later"), "miss", host]
    done = run(*words, variables=variables).wait(60)
    assert "limosa: rank 3 has left by MPI_Finalize while rank 0 waits for it" in done.err, done.err
    run.nothing_stays()


def test_a_spawn_of_what_another_host_has_not_fails(run: Runner, program) -> None:
    here = "/tmp/only-on-node1"
    run.cluster.hosts[0].run("sh", "-c", f"printf '#!/bin/sh\\nsleep 1000\\n' > {here}; chmod +x {here}")
    done = run("-host", "node1:1,node2:1", program("later"), "fail", here, "node2").wait(20)
    assert (done.code, done.err) == (0, "")
    assert f"there is no {here} on this host (node2)" in done.out
    run.nothing_stays()


@pytest.mark.parametrize(
    ("what", "host", "says"),
    [
        ("/bin/true", "node2", "exited with code 0 before MPI_Init"),
        ("/bin/true", "node9", "`node9` is no host of this job"),
    ],
)
def test_a_spawn_that_cannot_succeed_says_why(run: Runner, program, what: str, host: str, says: str) -> None:
    done = run("-host", "node1:1,node2:1", program("later"), "fail", what, host).wait(20)
    assert (done.code, done.err) == (0, "")
    assert says in done.out


@pytest.mark.parametrize("list_of_hosts", ["node1:1,node2:1", "node2:1,node1:1", "node2:2"])
def test_names_and_ports_are_known_on_all_hosts(run: Runner, program, list_of_hosts: str) -> None:
    done = run("-host", list_of_hosts, program("later"), "names").wait(20)
    assert (done.code, done.err) == (0, "")
    said = sorted(line.partition("; then: ")[0] for line in done.out.splitlines())
    assert said == ["0 met 1", "1 met 0"] and done.out.count("MPI_Comm_connect: ") == 2, done.out
    run.nothing_stays()


def test_a_job_on_another_host_is_not_found_and_the_reason_said(run: Runner) -> None:
    server = run.cluster.shared / "server.py"
    server.write_text(
        "from mpi4py import MPI\n"
        "port = MPI.Open_port()\n"
        "MPI.Publish_name('weather', port)\n"
        "print(port, flush=True)\n"
        "input()\n"
    )
    client = run.cluster.shared / "client.py"
    client.write_text(
        "import sys\n"
        "from mpi4py import MPI\n"
        "MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)\n"
        "for ask in [lambda: MPI.Lookup_name('weather'), lambda: MPI.COMM_WORLD.Connect(sys.argv[1])]:\n"
        "    try:\n"
        "        print(ask())\n"
        "    except MPI.Exception as error:\n"
        "        print(error)\n"
    )
    job = run("-n", "1", server, stdin=subprocess.PIPE)
    port = job.read_lines(1)[0]
    done = run("-n", "1", client, port, on=run.cluster.hosts[1]).wait(20)
    assert (done.code, done.err) == (0, "")
    looked, connected = done.out.splitlines()
    assert "no name `weather` is published" in looked and "whose launcher is on this host" in looked
    assert f"no open port `{port}` on this host" in connected
    job.process.communicate("\n", timeout=20 * PATIENCE)
    assert job.process.returncode == 0


def test_jobs_that_meet_over_two_hosts_are_told_that_they_cannot(run: Runner) -> None:
    script = run.cluster.shared / "meet.py"
    script.write_text(
        "import sys\n"
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "world.Set_errhandler(MPI.ERRORS_RETURN)\n"
        "port = sys.argv[1] if len(sys.argv) > 1 else world.bcast(MPI.Open_port() if world.rank == 0 else None)\n"
        "if len(sys.argv) == 1 and world.rank == 0:\n"
        "    print(port, flush=True)\n"
        "try:\n"
        "    (world.Connect if len(sys.argv) > 1 else world.Accept)(port)\n"
        "except MPI.Exception as error:\n"
        "    print(error)\n"
    )
    server = run("-host", "node1,node2", script)
    port = server.read_lines(1)[0]
    client = run("-host", "node1,node2", script, port).wait(40)
    assert (client.code, client.err) == (0, "")
    out, _ = server.process.communicate(timeout=20 * PATIENCE)
    reason = "these jobs have no device in common: rank 0 of this group and rank 1 of the other"
    for said in (client.out, out):
        assert said.count(reason) == 2, said
    run.nothing_stays()


def test_spawned_processes_of_a_host_share_no_memory_and_that_is_seen(run: Runner) -> None:
    script = run.cluster.shared / "more.py"
    script.write_text(
        "import sys\n"
        "from mpi4py import MPI\n"
        "parent = MPI.Comm.Get_parent()\n"
        "if parent == MPI.COMM_NULL:\n"
        "    parent = MPI.COMM_WORLD.Spawn(sys.executable, [sys.argv[0]], 2)\n"
        "everyone = parent.Merge()\n"
        "host = everyone.Split_type(MPI.COMM_TYPE_SHARED)\n"
        "MPI.Win.Allocate_shared(8, 8, comm=host).Free()\n"
        "names = everyone.gather((MPI.Get_processor_name(), host.size))\n"
        "if everyone.rank == 0:\n"
        "    print(sorted(names))\n"
    )
    done = run("-host", "node1:1,node2:1", script).wait(30)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{[('node1', 1), ('node1', 1), ('node2', 1), ('node2', 1)]}\n"


@pytest.mark.parametrize("rank", [0, 3])
def test_the_exit_code_of_a_rank_ends_the_job(run: Runner, rank: int) -> None:
    script = f"test $LIMOSA_RANK = {rank} && exit 7; sleep 1000"
    done = run("-host", "node1:2,node2:2", "sh", "-c", script).wait(20)
    assert done.code == 7
    assert f"rank {rank} (process " in done.err and f"on node{1 + rank // 2}, sh) exited with code 7" in done.err
    run.nothing_stays()


def test_an_abort_is_reported_with_its_host(run: Runner, program) -> None:
    done = run("-host", "node1:2,node2:2", program("around"), "abort").wait(20)
    assert done.code == 5
    assert "on node2" in done.err and "aborted the job with code 5" in done.err
    run.nothing_stays()


def test_a_killed_rank_ends_the_job(run: Runner, program) -> None:
    job = run("-host", "node1:2,node2:2", program("around"), "sleep")
    pids = dict(line.split()[1:] for line in job.read_lines(4))
    killed = run.cluster.hosts[1].run("kill", "-KILL", pids["3"])
    assert killed.returncode == 0
    done = job.wait(20)
    assert done.code == 128 + signal.SIGKILL
    assert "rank 3" in done.err and "on node2" in done.err and "signal 9" in done.err
    run.nothing_stays()


def test_a_killed_rank_is_the_cause_even_if_its_neighbour_exits_because_of_it(run: Runner) -> None:
    script = "trap 'exit 1' USR1; echo rank $LIMOSA_RANK $$; while :; do sleep 0.05; done"
    job = run("-host", "node1:1,node2:2", "sh", "-c", script)
    pids = dict(line.split()[1:] for line in job.read_lines(3))
    host = run.cluster.hosts[1]
    agent = limosa_of(host, "agent")
    # The agent hears of both ends at once.
    host.run("kill", "-STOP", agent)
    host.run("kill", "-KILL", pids["2"])
    host.run("kill", "-USR1", pids["1"])
    for rank in ("1", "2"):
        wait_until(
            lambda rank=rank: host.run("ps", "-o", "stat=", "-p", pids[rank]).stdout.startswith("Z"),
            f"rank {rank} does not end",
        )
    host.run("kill", "-CONT", agent)
    done = job.wait(20)
    assert done.code == 128 + signal.SIGKILL, done.text
    assert f"rank 2 (process {pids['2']} on node2, " in done.err, done.text
    run.nothing_stays()


def test_a_signal_reaches_all_ranks(run: Runner) -> None:
    script = "trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.05; done"
    job = run("-host", "node1:1,node2:1", "sh", "-c", script)
    assert job.read_lines(2) == ["ready", "ready"]
    launcher = limosa_of(run.cluster.hosts[0], " run ")
    run.cluster.hosts[0].run("kill", "-USR1", launcher)
    done = job.wait(20)
    assert (done.code, done.out) == (0, "got it\ngot it\n"), done.err


def test_an_interrupt_ends_all(run: Runner) -> None:
    job = run("-host", "node1:1,node2:1", "sh", "-c", "echo ready; exec sleep 1000")
    job.read_lines(2)
    run.cluster.hosts[0].run("kill", "-INT", limosa_of(run.cluster.hosts[0], " run "))
    assert job.wait(20).code == 128 + signal.SIGINT
    run.nothing_stays()


def test_a_time_limit_ends_all(run: Runner) -> None:
    done = run("--timeout", "1", "-host", "node1:1,node2:1", "sleep", "1000").wait(20)
    assert done.code == 124
    run.nothing_stays()


def limosa_of(host: Host, word: str) -> str:
    """The process of a host that is `limosa` with this word behind it."""
    for line in host.run("ps", "-e", "-o", "pid=,args=").stdout.splitlines():
        pid, _, words = line.strip().partition(" ")
        if words.split()[0].endswith("/limosa") and f"{word.strip()}" in words.split()[1:2]:
            return pid
    raise AssertionError(f"no `limosa {word}` on {host.name}")


def test_a_killed_launcher_leaves_nothing(run: Runner, program) -> None:
    job = run("-host", "node1:2,node2:2", program("around"), "sleep")
    job.read_lines(4)
    run.cluster.hosts[0].run("kill", "-KILL", limosa_of(run.cluster.hosts[0], "run"))
    run.nothing_stays()


def test_a_killed_agent_ends_the_job_and_names_the_host(run: Runner, program) -> None:
    job = run("-host", "node1:2,node2:2", program("around"), "sleep")
    job.read_lines(4)
    run.cluster.hosts[1].run("kill", "-KILL", limosa_of(run.cluster.hosts[1], "agent"))
    done = job.wait(20)
    assert done.code == 3
    assert "the host node2 is lost, with ranks 2, 3: " in done.err
    run.nothing_stays()


def test_a_host_that_is_gone_ends_the_job_and_is_named(needs_hosts: None) -> None:
    with Cluster(2) as made:
        run = Runner(made, f"file:{made.shared}/messages")
        job = run("-host", "node1:1,node2:1", "sh", "-c", "echo ready; exec sleep 1000", variables=SOON)
        job.read_lines(2)
        made.hosts[1].kill()
        done = job.wait(SILENCE + 10)
        assert done.code == 3 and "the host node2 is lost, with rank 1" in done.err
        wait_until(lambda: made.hosts[0].processes() == [], "processes are left on node1")


def test_an_agent_that_hears_nothing_ends_its_ranks(needs_hosts: None) -> None:
    with Cluster(2) as made:
        run = Runner(made, f"file:{made.shared}/messages")
        job = run("-host", "node1:1,node2:1", "sh", "-c", "echo ready; exec sleep 1000", variables=SOON)
        job.read_lines(2)
        made.cable(made.hosts[1], "down")
        wait_until(lambda: made.hosts[1].processes() == [], "the ranks of the host that was cut off live on")
        assert job.wait(SILENCE + 10).code == 3


def test_a_host_that_is_not_there_is_named(run: Runner) -> None:
    done = run("-host", "node1:1,nowhere:1", "sleep", "1000").wait(30)
    assert done.code == 3
    assert "cannot start ranks on the host nowhere: ssh: " in done.err and "hint: `ssh nowhere` must log in" in done.err
    run.nothing_stays()


@pytest.mark.parametrize(
    ("options", "says", "hint"),
    [
        (
            "-o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null",
            "Host key",
            "log in once with `ssh node2`",
        ),
        (
            "-o IdentityFile=/dev/null -o IdentitiesOnly=yes -F /dev/null -o StrictHostKeyChecking=no",
            "denied",
            "ssh-copy-id",
        ),
    ],
    ids=["key of the host", "key of the user"],
)
def test_a_login_that_would_ask_is_named_with_what_to_do(run: Runner, options: str, says: str, hint: str) -> None:
    ssh = {"LIMOSA_SSH": f"ssh -o BatchMode=yes {options}"}
    done = run("-host", "node1,node2", "sleep", "1000", variables=ssh).wait(30)
    assert done.code == 3 and "cannot start ranks on the host node2: " in done.err, done.err
    assert says in done.err and hint in done.err, done.err
    run.nothing_stays()


def test_hosts_without_numbers_get_a_rank_each(run: Runner) -> None:
    done = run("-host", "node1,node2", "hostname").wait(30)
    assert (done.code, sorted(done.out.split())) == (0, ["node1", "node2"]), done.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("node1 slots=2\nnode2 slot=2\n", "line 2 of the host file hosts: `slot=2` says nothing"),
        ("node1,node2\n", "line 1 of the host file hosts: `node1,node2` is no name of a host"),
        ("node1:two\n", "`node1:two` is no name of a host"),
        ("# none\n", "the host file hosts lists no host"),
    ],
)
def test_a_mistake_in_a_host_file_is_named(run: Runner, text: str, says: str) -> None:
    (run.cluster.shared / "hosts").write_text(text)
    done = run("-hostfile", "hosts", "hostname").wait(30)
    assert (done.code, done.out) == (2, "") and says in done.err, done.err


def test_another_version_there_is_named(run: Runner) -> None:
    other = run.cluster.shared / "other-ssh"
    other.write_text("#!/bin/sh\necho Welcome\necho limosa-agent 99 7.6.5\nsleep 1000\n")
    other.chmod(0o755)
    done = run("-host", "node1:1,node2:1", "sleep", "1000", variables={"LIMOSA_SSH": str(other)}).wait(20)
    assert done.code == 3 and "on the host node2: it has Limosa 7.6.5, and this is Limosa " in done.err
    run.nothing_stays()


def test_a_program_that_is_not_there_is_named_with_the_host(run: Runner) -> None:
    here = "/tmp/only-here"
    run.cluster.hosts[0].run("sh", "-c", f"printf '#!/bin/sh\\nsleep 1000\\n' > {here}; chmod +x {here}")
    done = run("-host", "node1:1,node2:1", here).wait(20)
    assert done.code == 3 and f"cannot start rank 1: there is no {here} on this host (node2)" in done.err
    run.nothing_stays()


def test_without_a_device_between_hosts_nothing_starts(run: Runner) -> None:
    done = run("-host", "node1:1,node2:1", "echo", "started", variables={"LIMOSA_DEVICE": "shm"}).wait(20)
    assert (done.code, done.out) == (2, "")
    assert "no device reaches the other hosts" in done.err and "--device file:FOLDER" in done.err


def test_a_hang_over_two_hosts_is_reported_with_all_ranks(run: Runner, program) -> None:
    done = run("--on-hang=abort", "-host", "node1:1,node2:1", program("around"), "hang").wait(40)
    assert done.code == 86
    assert "rank 0" in done.err and "rank 1" in done.err and "MPI_Recv" in done.err


def test_the_report_of_a_hang_has_source_lines_of_all_hosts(run: Runner) -> None:
    script = run.cluster.shared / "stuck.py"
    script.write_text("from mpi4py import MPI\n\nMPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.rank)\n")
    done = run("--on-hang=abort", "-host", "node1:1,node2:1", script).wait(40)
    assert done.code == 86
    assert done.err.count("stuck.py:3 in <module>") >= 2, done.err


def test_all_hosts_are_listed_by_ps(run: Runner, program) -> None:
    job = run("-host", "node1:1,node2:1", program("around"), "sleep")
    pids = dict(line.split()[1:] for line in job.read_lines(2))

    def states() -> list:
        jobs = json.loads(run.cluster.hosts[0].run(BIN / "limosa", "ps", "--format", "json").stdout)
        return [
            (rank["rank"], rank["host"], str(rank["process"]), rank["state"]) for job in jobs for rank in job["ranks"]
        ]

    expected = [(rank, f"node{rank + 1}", pids[str(rank)], "running") for rank in range(2)]
    wait_until(lambda: states() == expected, f"ps does not show {expected}")
