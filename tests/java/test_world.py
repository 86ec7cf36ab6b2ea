"""The interface ``org.limosa``: programs that follow every method and check what they get, and how worlds end."""

import re
from pathlib import Path

import pytest

PROGRAMS = ["WorldMessages", "WorldFutures", "WorldCollectives", "WorldGroups", "WorldMistakes"]
GUIDE = Path(__file__).parents[2] / "docs" / "java.md"


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("ranks", ["processes", "threads"])
def test_program(outcome_of, ranks, name, n):
    outcome = outcome_of(name, ranks, n)
    assert outcome.out == "ok\n", outcome.text
    assert outcome.err == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_on_another_library(java, programs, on_mpich, name):
    outcome = java.run("-cp", programs, name, n=2, options=on_mpich)
    assert outcome.out == "ok\n", outcome.text


def write(java, text, opened=False):
    """A program whose ranks make these statements, in World.run or in a try statement."""
    begin = "try (World world = World.open())" if opened else "World.run(args, world ->"
    return java.write(
        f"""
        import org.limosa.*;
        class Main {{
            public static void main(String[] args) throws Exception {{
                {begin} {{
                    {text}
                }}{"" if opened else ");"}
            }}
        }}
        """
    )


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_an_exception_ends_the_job(java, options, opened):
    text = 'if (world.rank() == 1) throw new java.io.IOException("of rank 1"); world.receive(String.class, 1);'
    outcome = java.run(write(java, text, opened), options=options, succeeds=False)
    assert outcome.code == 1
    assert "rank 1: an exception that nothing has caught" in outcome.err
    assert "java.io.IOException: of rank 1" in outcome.err
    assert "Main.java" in outcome.err
    assert "org.limosa.run" not in outcome.err


def test_an_error_of_message_passing_names_the_call_and_the_rank(java):
    outcome = java.run(write(java, "world.send(new int[1], 9);"), succeeds=False)
    assert outcome.code == 1
    # Whichever rank is first says it, for both.
    assert re.search(r"RankException: send on rank [01]: there is no destination 9; ranks are 0 to 1\b", outcome.err)


@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_exit_codes(java, options):
    for text in ("System.exit(7)", "world.abort(7)"):
        file = write(java, f"if (world.rank() == 1) {text}; else world.barrier();")
        assert java.run(file, options=options, succeeds=False).code == 7


@pytest.mark.parametrize("options", [[], ["--threads"]])
def test_a_program_may_exit_after_its_world(java, options):
    text = "org.limosa.World.run(world -> world.barrier()); System.out.println(1); System.exit(0);"
    outcome = java.run(java.write(f"class Main {{ void main() {{ {text} }} }}"), options=options)
    assert outcome.out == "1\n1\n"
    assert outcome.err == ""


def test_values_that_the_filter_rejects(java):
    file = write(
        java,
        """
        if (world.rank() == 0) { world.send(new java.util.HashMap<>(), 1); world.send("text", 1); return; }
        try { world.receive(Object.class, 0); } catch (LimosaException e) { System.out.println(e.getMessage()); }
        System.out.println(world.receive(String.class, 0));
        """,
    )
    outcome = java.run(file, env={"JAVA_TOOL_OPTIONS": "-Dlimosa.object.filter=java.lang.*;!*"})
    assert "receive on rank 1: the value that has come cannot be read" in outcome.out
    assert "REJECTED" in outcome.out
    assert outcome.out.endswith("text\n")


def test_without_a_library_the_reason_is_told(java):
    outcome = java.run(write(java, ""), n=1, env={"JAVA_LIMOSA_LIBRARY": "/nowhere/libmpi.so"}, succeeds=False)
    assert outcome.code == 1
    assert "World.open: there is no MPI library: /nowhere/libmpi.so" in outcome.err


@pytest.mark.quiet
def test_futures_do_not_use_a_processor_while_they_wait(java):
    file = write(
        java,
        """
        var futures = new java.util.ArrayList<java.util.concurrent.Future<String>>();
        for (int i = 0; i < 50; i++) futures.add(world.receiveAsync(String.class, 1 - world.rank(), i));
        world.barrier();
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 4; i++) {
            long before = ProcessHandle.current().info().totalCpuDuration().orElseThrow().toMillis();
            Thread.sleep(500);
            long used = ProcessHandle.current().info().totalCpuDuration().orElseThrow().toMillis() - before;
            least = Math.min(least, used);
        }
        System.out.println(least);
        world.barrier();
        """,
    )
    for options in ([], ["--threads"]):
        # Half a processor would be 250. The collector and the compiler work at times, and not in each of these spans.
        assert all(int(used) < 175 for used in java.run(file, options=options).out.split())


def test_the_programs_of_the_guide_run(java):
    section = GUIDE.read_text().split("\n## The interface org.limosa\n")[1].split("\n## What messages cost")[0]
    programs = re.findall(r"^```java\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert len(programs) > 3
    for program in programs:
        file = java.write(program)
        for n, options in ((2, []), (4, ["--threads"])):
            outcome = java.run(file, n=n, options=options)
            assert not outcome.err, outcome.text
