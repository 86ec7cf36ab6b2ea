"""What a newcomer's shell meets: first programs, completion, man pages, commands without the extras."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PREFIX = Path(sys.prefix)
LIMOSA = PREFIX / "bin" / "limosa"
TOOLS = {
    "python": [],
    "c": ["make", "cc"],
    "c++": ["make", "c++"],
    "fortran": ["make", "gfortran"],
    "octave": ["octave-cli", "mkoctfile"],
    "java": ["javac"],
}


def shell(text, folder, *arguments):
    """Run commands with bash as a user types them, with Limosa's environment active."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    env["PATH"] = f"{PREFIX / 'bin'}:{env['PATH']}"
    command = ["bash", "--norc", "-c", text, "bash", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("language", TOOLS)
def test_a_first_program_runs_and_passes_its_test_as_it_stands(language, tmp_path):
    if missing := [tool for tool in TOOLS[language] if shutil.which(tool) is None]:
        pytest.skip(f"the language needs {', '.join(missing)}, not installed here")
    made = shell(f"limosa new {language}", tmp_path)
    assert made.returncode == 0, made.stderr
    files = [tmp_path / name for name in made.stdout.splitlines()]
    assert files and all(file.is_file() for file in files)
    run, test = re.fullmatch(r"limosa: to run it, type: (.*)\nhint: then test it: (.*)\n", made.stderr).groups()
    ran = shell(run, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "the area of the unit circle, by 4 ranks, is 3.14159"
    tested = shell(test, files[0].parent)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    # A program that computes something else fails its test.
    source = next(file for file in files if "(1 - x" in file.read_text())
    source.write_text(source.read_text().replace("(1 - x", "(2 - x"))
    assert shell(test, files[0].parent).returncode != 0


def test_a_first_program_overwrites_nothing(tmp_path):
    (tmp_path / "Makefile").write_text("mine\n")
    made = shell("limosa new c .", tmp_path)
    expected = "limosa: ./Makefile exists and is not overwritten\nhint: name another folder\n"
    assert (made.returncode, made.stdout, made.stderr) == (2, "", expected)
    assert [file.name for file in tmp_path.iterdir()] == ["Makefile"]
    assert (tmp_path / "Makefile").read_text() == "mine\n"


def test_an_unknown_language_is_named_with_those_that_there_are(tmp_path):
    made = shell("limosa new rust", tmp_path)
    assert made.returncode == 2
    assert "invalid value 'rust'" in made.stderr
    assert "possible values: python, c, c++, fortran, octave, java" in made.stderr
    assert not list(tmp_path.iterdir())


COMPLETE = """
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
name=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
"$name" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    "source",
    ["source <(limosa completion bash)", f"source {PREFIX}/share/bash-completion/completions/limosa"],
    ids=["printed", "installed"],
)
def test_bash_completes_commands_and_options(source, tmp_path):
    def completed(*words):
        done = shell(source + COMPLETE, tmp_path, *words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert completed("limosa", "ne") == ["new"]
    assert completed("limosa", "p") == ["predict", "profile", "ps"]
    assert completed("limosa", "new", "fo") == ["fortran"]
    assert completed("limosa", "run", "--on-h") == ["--on-hang"]
    assert completed("limosa", "run", "--on-hang", "a") == ["abort"]
    assert completed("limosa", "bench", "--aga") == ["--against"]
    assert completed("limosa", "submit", "--on", "s") == ["slurm"]
    assert completed("mpiexec", "--map") == ["--map-by"]
    assert "agent" not in completed("limosa", "")


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_accept_the_completion(name, tmp_path):
    script = shell(f"limosa completion {name}", tmp_path).stdout
    place = {"zsh": "zsh/site-functions/_limosa", "fish": "fish/vendor_completions.d/limosa.fish"}[name]
    assert (PREFIX / "share" / place).read_text() == script
    assert "on-hang" in script and "against" in script
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: its syntax is not checked")
    checked = subprocess.run([name, "-n"], input=script, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_man_finds_a_page_of_each_command(tmp_path):
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man and groff are not installed")
    commands = re.findall(r"^  (\w+) ", shell("limosa -h", tmp_path).stdout, re.MULTILINE)
    assert "run" in commands and "bench" in commands
    for page in ["limosa", "mpiexec", *(f"limosa-{command}" for command in [*commands, "predict", "status"])]:
        found = shell(f"man -w {page}", tmp_path)
        # For the launcher's names man gives the page that they stand for.
        name = "limosa-run" if page == "mpiexec" else page
        assert found.stdout.split() == [f"{PREFIX}/share/man/man1/{name}.1"], found.stderr
        drawn = shell(f"groff -man -Tutf8 -ww -P-cbou {found.stdout}", tmp_path)
        assert (drawn.returncode, drawn.stderr) == (0, ""), page
        text = " ".join(drawn.stdout.split())
        assert page == "limosa-cc" or "Print help" in text, page
    text = shell("MANWIDTH=120 man limosa-run | cat", tmp_path).stdout
    for words in ["limosa run", "--on-hang", "Exit codes", "--map-by"]:
        assert words in text, words
