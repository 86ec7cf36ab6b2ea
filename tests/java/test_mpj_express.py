"""Programs that were compiled with MPJ Express run on it and on Limosa, with the same results.

MPJ Express is Debian's package libmpj-java. Its launcher does not find log4j by itself, so the path of Java's own
classes names it.
"""

import os
import subprocess
from pathlib import Path

import pytest

CLASSES = Path("/usr/share/mpj/lib/mpj.jar")
LIBRARIES = [f"/usr/share/java/{name}.jar" for name in ("log4j-1.2", "commons-cli", "commons-io", "commons-codec")]
KERNELS = Path(__file__).resolve().parents[2] / "kernels" / "jgf"

PROGRAM = """
import java.util.Arrays;
import mpi.*;
public class Main {
    public static void main(String[] args) {
        String[] own = MPI.Init(args);
        int rank = MPI.COMM_WORLD.Rank();
        int size = MPI.COMM_WORLD.Size();
        int other = size - 1 - rank;
        Object[] texts = new Object[1];
        Request sent = MPI.COMM_WORLD.Isend(new Object[] {"from " + rank}, 0, 1, MPI.OBJECT, other, 1);
        Status status = MPI.COMM_WORLD.Recv(texts, 0, 1, MPI.OBJECT, MPI.ANY_SOURCE, MPI.ANY_TAG);
        sent.Wait();
        double[] mine = {rank, 2.5};
        double[] sum = new double[2];
        MPI.COMM_WORLD.Allreduce(mine, 0, sum, 0, 2, MPI.DOUBLE, MPI.SUM);
        int[] all = new int[size];
        MPI.COMM_WORLD.Allgather(new int[] {rank * rank}, 0, 1, MPI.INT, all, 0, 1, MPI.INT);
        int[] matrix = {1, 2, 3, 4, 5, 6};
        MPI.COMM_WORLD.Bcast(matrix, 1, 1, Datatype.Vector(2, 1, 3, MPI.INT), 0);
        int members = MPI.COMM_WORLD.Group().Size();
        System.out.println(rank + ": " + texts[0] + ", " + status.source + " " + Arrays.toString(sum)
            + Arrays.toString(all) + Arrays.toString(matrix) + members + " " + String.join("+", own) + args[3]);
        MPI.Finalize();
    }
}
"""


class MpjExpress:
    """Compiles and runs programs with MPJ Express."""

    def __init__(self, jdk, folder):
        self.jdk = jdk
        self.folder = folder

    def compile(self, source):
        """Give the folder with the classes of a source file and of what it uses beside it."""
        classes = self.folder / "of-mpj-express"
        command = [self.jdk, "-cp", CLASSES, "-sourcepath", source.parent, "-d", classes, source]
        subprocess.run(command, check=True)
        return classes

    def run(self, classes, name, *words, n):
        """Run a class with ranks that are threads; gives what it has printed."""
        env = os.environ | {
            "MPJ_HOME": str(CLASSES.parents[1]),
            "PATH": f"{self.jdk.resolve().parent}:{os.environ['PATH']}",
            "JAVA_TOOL_OPTIONS": "-Xbootclasspath/a:" + ":".join(LIBRARIES),
        }
        command = ["mpjrun", "-np", str(n), "-dev", "multicore", "-cp", str(classes), name, *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        own = ("MPJ Express", "Picked up JAVA_TOOL_OPTIONS")
        return [line for line in done.stdout.splitlines() if not line.startswith(own)]


@pytest.fixture
def mpj_express(jdk, tmp_path):
    if not CLASSES.is_file():
        pytest.skip("not run: MPJ Express (Debian's package libmpj-java) is not installed")
    return MpjExpress(jdk, tmp_path)


def test_a_program_compiled_with_mpj_express(java, mpj_express):
    classes = mpj_express.compile(java.write(PROGRAM))
    there = sorted(mpj_express.run(classes, "Main", "a", "b", n=4))
    assert len(there) == 4
    for options in ([], ["--threads"]):
        here = java.run("-cp", classes, "Main", "a", "b", n=4, options=["--dialect", "mpj", *options])
        assert sorted(here.out.splitlines()) == there


@pytest.mark.parametrize("name", ["Series", "LuFact"])
def test_a_kernel_compiled_with_mpj_express(java, mpj_express, name):
    classes = mpj_express.compile(KERNELS / f"{name}.java")
    (there,) = mpj_express.run(classes, name, "A", n=2)
    (here,) = java.run("-cp", classes, name, "A").out.splitlines()
    assert here.split()[0] == there.split()[0]
    assert here.startswith("Section2:")
