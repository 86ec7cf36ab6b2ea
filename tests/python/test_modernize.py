"""`limosa modernize`: old sources become ones that run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jobs import Job
from limosa.modernize import divisions, modernized

LIMOSA = str(Path(sys.executable).parent / "limosa")

OLD = '''#!/usr/bin/env python
"""An old program."""
import Numeric, string, sys
from numpy.oldnumeric import zeros
import numpy.oldnumeric as N

def total(values):
    sum = 0
    for i in xrange(len(values)):
        sum = sum + values[i]
    return sum

words = string.split("a b c")
print string.join(words, '-'), string.atoi('3') + 1,
print >>sys.stdout, string.upper("x" + "y")
try:
    raise ValueError, "bad"
except ValueError, e:
    print `e.args`
a = Numeric.array([1, 2, 3], Numeric.Float)
if a.typecode() == N.Float and not {}.has_key(1):
    print total(a), Numeric.zeros(2).tolist(), zeros((1,), '1').typecode(), N.sum([[1, 2], [3, 4]])
print 7 / 2, 7 // 2
'''


def modernize(*arguments: object, **options):
    return Job([LIMOSA, "modernize", *map(str, arguments)], **options).wait(60)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "old.py"
    file.write_text(OLD)
    return file


def test_the_result_runs(old):
    outcome = modernize("--write", old)
    assert outcome.code == 0, outcome.text
    assert (old.parent / "old.py.bak").read_text() == OLD
    done = subprocess.run([sys.executable, old], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["a-b-c 4 XY", "('bad',)", "6.0 [0, 0] b [4 6]", "3.5 3"], done.stderr


def test_without_options_nothing_is_changed_and_the_difference_shown(old):
    outcome = modernize(old)
    assert outcome.code == 0 and old.read_text() == OLD
    assert {"-    print `e.args`", "+    print(repr(e.args))"} <= set(outcome.out.splitlines())
    assert list(old.parent.iterdir()) == [old]


def test_divisions_are_pointed_out(old):
    outcome = modernize(old)
    assert f"{old}: look at the divisions in new line 23:" in outcome.err
    assert divisions("a = 1 / 2\nb = 3 // 4\nc /= 2\n") == [1, 3]
    assert divisions("from __future__ import division\na = 1 / 2\n") == []


def test_a_folder_is_turned_into_another_one(old, tmp_path):
    source = tmp_path / "source"
    (source / "part").mkdir(parents=True)
    (source / "part" / "one.py").write_text("print 1\n")
    (source / "new.py").write_text("print(2)\n")
    (source / "data.txt").write_text("print 3\n")
    outcome = modernize("-o", tmp_path / "result", source, old)
    assert outcome.code == 0, outcome.text
    result = {
        str(file.relative_to(tmp_path / "result")): file.read_text() for file in (tmp_path / "result").rglob("*.*")
    }
    assert result.keys() == {"source/part/one.py", "source/new.py", "old.py"}
    assert result["source/part/one.py"] == "print(1)\n" and result["source/new.py"] == "print(2)\n"
    assert old.read_text() == OLD


def test_text_in_an_old_encoding_is_kept(tmp_path):
    declared, undeclared = tmp_path / "declared.py", tmp_path / "undeclared.py"
    declared.write_bytes("# -*- coding: latin-1 -*-\nprint 'é'\n".encode("latin-1"))
    undeclared.write_bytes("print 'é'\n".encode("latin-1"))
    assert modernize("-w", declared, undeclared).code == 0
    for file in (declared, undeclared):
        done = subprocess.run([sys.executable, "-X", "utf8", file], capture_output=True, check=True)
        assert done.stdout.decode() == "é\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import Numeric\n", "import limosa.oldnumeric as Numeric\n"),
        ("import sys, Numeric\n", "import sys, limosa.oldnumeric as Numeric\n"),
        ("import Numeric as N, sys\n", "import limosa.oldnumeric as N, sys\n"),
        ("from Numeric import *\n", "from limosa.oldnumeric import *\n"),
        ("import numpy.oldnumeric as N\n", "import limosa.oldnumeric as N\n"),
        ("x = f(y).typecode()\n", "x = f(y).dtype.char\n"),
        ("string.join(a + b, sep)\n", "sep.join(a + b)\n"),
        ("string.replace(a + b, 'x', 'y')[1:]\n", "(a + b).replace('x', 'y')[1:]\n"),
        ("string.atof(x)\n", "float(x)\n"),
        ("string.letters[0]\n", "string.ascii_letters[0]\n"),
        ("a = time.clock() - b\n", "a = time.process_time() - b\n"),
        ("a = numpy.zeros(2, numpy.float); b = np.int(3)\n", "a = numpy.zeros(2, float); b = int(3)\n"),
        ("a = np.product(b), np.float64(c), self.np.int\n", "a = np.prod(b), np.float64(c), self.np.int\n"),
        (
            "if a:\n        b\n        if c:\n\t\td = '''\n\t'''\n",
            "if a:\n        b\n        if c:\n                d = '''\n\t'''\n",
        ),
        ("if a:\n\tb\n", "if a:\n\tb\n"),
        ("print('one')\n", "print('one')\n"),
        (
            "from __future__ import print_function\nprint('a', file=f)\n",
            "from __future__ import print_function\nprint('a', file=f)\n",
        ),
        ("print(2)\n", "print(2)\n"),
        ("print (2)\nprint\n", "print((2))\nprint()\n"),
        ("x = 1", "x = 1"),
    ],
)
def test_each_change(before, after):
    assert modernized(before) == after


def test_what_is_left_to_the_author_is_listed(tmp_path):
    old = tmp_path / "old.py"
    (tmp_path / "beside.py").touch()
    old.write_text("import beside, sets\nfrom string import atoi, digits\nx.sort(cmp)\nraise 'text'\n")
    said = modernize(old).err.splitlines()
    assert [line.removeprefix(f"limosa: {old}: ") for line in said] == [
        "old line 4: could not convert: raise 'text' (Python 3 does not support string exceptions)",
        "new line 1: there is no module `sets` here",
        "new line 2: module string has no `atoi` any more",
        "new line 4: there is no function `cmp` any more",
    ]


def test_a_result_that_is_no_python_3_is_an_error(tmp_path):
    old = tmp_path / "old.py"
    old.write_text("x = 1\nasync = 2\n")
    outcome = modernize(old)
    assert outcome.code == 2 and f"{old}: the result is not Python 3 yet: new line 2:" in outcome.err


def test_what_is_no_python_is_named_and_the_rest_is_done(tmp_path):
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text("x = 1\nthis is no program\n")
    good.write_text("print 1\n")
    outcome = modernize("-w", bad, good)
    assert outcome.code == 2
    assert f"limosa: {bad}:2:" in outcome.err and "this is not valid Python" in outcome.err
    assert good.read_text() == "print(1)\n"


def test_wrong_use_is_said(tmp_path):
    assert "no such file or folder" in modernize(tmp_path / "nothing.py").err
    assert modernize().code == 2


def test_without_fissix_it_says_how_to_get_it(old, tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "fissix.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'fissix'\", name='fissix')\n"
    )
    path = f"import sys; sys.path.insert(0, {str(tmp_path / 'hidden')!r}); sys.argv[1:] = [{str(old)!r}]; "
    command = [sys.executable, "-c", path + "from limosa.modernize import main; sys.exit(main())"]
    outcome = Job(command).wait(60)
    assert (
        outcome.code == 2 and "hint: install it:" in outcome.err and "pip install 'limosa[modernize]'" in outcome.err
    ), outcome.text


SHADOWED = """
def f(n):
    list = range(n)
    for i in map(str, list): pass
    def g():
        return filter(None, list)
    return list, map(str, list), {1: 2}.keys()

def h(n):
    return range(n) + [1]

print f(3), h(2)
"""


def test_a_variable_called_list_is_not_called(tmp_path):
    new = modernized(SHADOWED)
    assert "list(" not in new.split("def h")[0], new
    assert "list(range(n)) + [1]" in new
    file = tmp_path / "new.py"
    file.write_text(new)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert done.stdout == "([0, 1, 2], ['0', '1', '2'], [1]) [0, 1, 1]\n", done.stderr


def test_a_parameter_called_list_is_not_called():
    assert (
        modernized("def f(list):\n    x = map(abs, list)\n    return x\n").splitlines()[1]
        == "    x = [*map(abs, list)]"
    )
    assert modernized("def f(list):\n    return g(range(3), 'é', range(4))\n").count("[*range") == 2


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "import numpy\nx = numpy.zeros(3).tostring()\n",
            "new line 2: arrays have no `tostring` any more: use tobytes",
        ),
        ("import string\nx = map(string.atoi, ['1'])\n", "new line 2: module string has no `atoi` any more: use int"),
        ("import pypar\npypar.receive(0, buffer=' ' * 9)\n", "new line 2: a string is a buffer here"),
        ("import pypar\npypar.raw_receive('', 0)\n", "new line 2: a string is a buffer here"),
    ],
)
def test_what_has_gone_is_reported(tmp_path, source, says):
    file = tmp_path / "old.py"
    file.write_text(source)
    assert says in modernize(file).err


def test_it_says_when_fissix_is_missing(old):
    code = "import sys; sys.modules['fissix'] = None; sys.argv[1:] = [sys.argv[1]]; from limosa import modernize; "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(modernize.main())", old], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "`limosa modernize` needs fissix, which is not installed" in done.stderr
    assert "pip install 'limosa[modernize]'" in done.stderr and "Traceback" not in done.stderr
