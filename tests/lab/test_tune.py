"""Tuning: what is found from models, what holds by measurement, and the file that is written."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from jobs import PATIENCE
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from limosa_lab.libraries import Mpich
from limosa_lab.model import measuring, plan
from limosa_lab.model.equivalents import GUIDELINES
from limosa_lab.model.fitting import Point
from limosa_lab.model.growth import Growth
from limosa_lab.model.library import Operation
from limosa_lab.model.models import Hockney
from limosa_lab.records import Sample
from limosa_lab.tune import choices, consistency, report, steps, store, variants, verdict
from limosa_lab.tune.rules import BELOW, MULTIPLE, RECIPES, Entry, Measured, everything, row, rules_text
from limosa_lab.tune.store import Part

SIZES = [1 << k for k in range(0, 21, 2)]


def operation(name, t0, tb, error=0.02):
    model = Hockney(Growth(t0), Growth(tb))
    points = [Point(n, 4, t0 + tb * n) for n in SIZES]
    return Operation(name, points, [], model, None, model, {model.name: error})


def entry(way="bcast = scatter + allgather", low=1, high=None, predicted=0.5, **more):
    return Entry(way.partition(" = ")[0], way, 4, low, high, predicted, 0.1, **more)


def cases(*times, name="bcast"):
    return {(name, 4, n): Measured(n, before, after, noise) for n, before, after, noise in times}


def test_every_recipe_is_a_guideline_and_known_to_the_library_that_replaces_collectives():
    assert {str(guideline) for guideline in GUIDELINES} >= RECIPES
    text = (Path(variants.SOURCE).parent / "rules.h").read_text()
    assert set(re.findall(r'\{"([a-z_+=]+)", [A-Z_]+\}', text)) == {name.replace(" ", "") for name in RECIPES}


def test_the_documentation_lists_all_guidelines_and_what_is_replaced():
    table = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text().partition("## The guidelines")[2]
    rows = re.findall(r"^\| (\w+) \| (?!should)([^|]+) \| [^|]+ \| (yes)? *\|$", table, re.MULTILINE)
    # What is before a `x` says how often a part is done.
    listed = {f"{name} = {re.sub(r'[^+]* x ', '', parts)}": replaced for name, parts, replaced in rows}
    assert listed == {str(one): "yes" if str(one) in RECIPES else "" for one in GUIDELINES}


def test_the_texts_that_replace_everything_use_all_recipes():
    used = {rule.split()[0] for text in everything() for rule in text.split(";")}
    assert used == {recipe.replace(" ", "") for recipe in RECIPES}


def test_a_combination_is_proposed_where_it_saves_more_than_the_models_err():
    slow = {"bcast": operation("bcast", 2, 0.01)}
    parts = {"scatter": operation("scatter", 2, 0.001), "allgather": operation("allgather", 3, 0.001)}
    (found,) = choices.substitutions(slow | parts)
    assert found.predicted_at(1 << 20) == pytest.approx(1 - 5 / (1 << 20) / 0.01 - 0.2, abs=0.01)
    # 2 + 0.01 n > 1.06 (5 + 0.002 n)
    assert (found.way, found.ranks, found.high) == ("bcast = scatter + allgather", 4, None)
    assert 0.94 * (2 + 0.01 * found.low) > 5 + 0.002 * found.low
    assert 0.94 * (2 + 0.01 * (0.98 * found.low - 1)) < 5 + 0.002 * (0.98 * found.low - 1)
    unsure = {name: operation(name, *map(float, (2, 0.001)), error=0.4) for name in parts}
    assert choices.substitutions({"bcast": operation("bcast", 2, 0.005, error=0.4)} | unsure) == []


def test_each_size_has_the_fastest_of_several_combinations():
    slow = {"gather": operation("gather", 100, 0.1)}
    parts = {"reduce": operation("reduce", 1, 0.05), "gatherv": operation("gatherv", 10, 0.001)}
    short, long = choices.substitutions(slow | parts)
    assert (short.way, short.low, long.way, long.high) == ("gather = reduce", 1, "gather = gatherv", None)
    # 1 + 0.05 n = 10 + 0.001 n
    assert short.high < long.low
    assert short.high == pytest.approx(9 / 0.049, rel=0.03)


def test_an_algorithm_is_kept_for_the_next_size_unless_another_one_saves_more_than_models_err():
    times = {"slots": [5, 5.1, 9, 9], "direct": [5.2, 5, 5, 9.9]}
    assert choices.fastest([10, 10, 10, 10], times, 0.05) == ["slots", "slots", "direct", "slots"]
    assert choices.fastest([5.1, 10, 5, 9], times, 0.05) == [None, "direct", None, None]


def test_rows_name_the_sizes_that_they_are_for():
    assert row("bcast", "rounds", 4, 1024, 4095) == "bcast shared 4 1024..4095 - rounds"
    assert row("scan", "pieces", 2, 64, None) == "scan shared 2 64..* direct pieces"
    # The table counts what each rank contributes; rows of neighbouring ranges have no size in common.
    assert row("gather", "slots", 4, 4096, 16383) == "gather shared 4 1024..4095 - slots"
    assert row("gather", "slots", 4, 3, 3) == "gather shared 4 1..1 - slots"


def test_algorithms_of_limosa_are_proposed_with_rows_for_the_sizes_where_they_gain():
    forced = {"rounds": {"bcast": operation("bcast", 1, 0.001)}, "direct": {"bcast": operation("bcast", 9, 0.0001)}}
    words = {"rounds": {"bcast": "rounds"}, "direct": {"bcast": "single_copy"}}
    (found,) = choices.algorithms({"bcast": operation("bcast", 1, 0.001)}, forced, words)
    # 9 + 0.0001 n < 1 + 0.001 n
    assert (found.way, found.low, found.high) == ("single_copy", 16384, 1 << 20)
    assert found.rows == ("bcast shared 4 16384..1048576 direct single_copy",)
    assert choices.algorithms({"bcast": operation("bcast", 0.9, 0.0001)}, forced, words) == []


def test_what_goes_into_slots_whatever_is_forced_is_not_taken_for_the_forced_algorithm():
    forced = {"rounds": {"bcast": operation("bcast", 1, 0.0001)}}
    (found,) = choices.algorithms({"bcast": operation("bcast", 2, 0.0005)}, forced, {"rounds": {"bcast": "rounds"}})
    assert found.low > 8 << 10


def test_an_entry_is_narrowed_to_the_ranges_of_sizes_where_it_gains():
    measured = cases((1, 10, 12, 0.1), (4, 10, 7, 0.1), (16, 10, 6, 0.1), (64, 10, 12, 0.1), (256, 10, 5, 0.1))
    found = verdict.judge([entry()], measured)
    # Up to the next measured size, or the last one.
    assert [(kept.low, kept.high) for kept in found.kept] == [(4, 63), (256, 256)]
    assert found.dropped == []
    (kept,) = verdict.judge([entry(high=40)], cases((4, 10, 7, 0.1), (64, 10, 12, 0.1))).kept
    assert (kept.low, kept.high) == (4, 40)


def test_a_size_that_is_no_slower_between_two_that_gain_belongs_to_the_range():
    measured = cases((4, 10, 7, 0.1), (16, 10, 9.9, 0.1), (64, 10, 6, 0.1), (256, 10, 9.9, 0.1), (1024, 10, 9.9, 0.1))
    assert [(kept.low, kept.high) for kept in verdict.judge([entry()], measured).kept] == [(4, 255)]


def test_an_entry_that_brings_nothing_is_dropped_with_what_was_measured():
    found = verdict.judge([entry(), entry("reduce = allreduce")], cases((1, 10, 9.5, 0.1), (4, 10, 11, 0.1)))
    assert found.kept == []
    assert [reason for _, reason in found.dropped] == ["saved 5 % at best, by measurement", "not measured"]


def test_rows_are_kept_for_the_sizes_where_they_gain_whatever_they_lose_at_others():
    rows = entry("single_copy", 8, 1 << 20, rows=("bcast shared 4 8..1048576 direct single_copy",))
    rows = replace(rows, operation="bcast")
    long = [(1 << k, 90, 30, 0.01) for k in range(14, 20)]
    (kept,) = verdict.judge([rows], cases((8, 0.2, 0.228, 0.07), (4096, 2.0, 2.28, 0.07), *long)).kept
    assert (kept.low, kept.high, kept.rows) == (
        1 << 14,
        1 << 19,
        ("bcast shared 4 16384..524288 direct single_copy",),
    )


def test_of_two_entries_for_a_size_only_the_first_was_measured():
    better, worse = entry(low=16, predicted=0.9), entry(low=1, predicted=0.2)
    measured = cases((1, 10, 5, 0.01), (16, 10, 20, 0.01), (64, 10, 5, 0.01))
    found = verdict.judge([worse, better], measured)
    assert [(kept.low, kept.high, kept.predicted) for kept in found.kept] == [(1, 15, 0.2), (64, 64, 0.9)]


def sample(library, number, *times, bench="bcast", ranks=4):
    return Sample(library, "primitives", number, bench, "hot", 64, ranks, "time", "us", list(times), True)


ROUNDS = [sample("a", 0, 10, 30), sample("a", 1, 11, 90), sample("a", 2, 50, 14)]
ROUNDS += [sample("b", 0, 6, 9), sample("b", 1, 6), sample("b", 2, 7)]


def test_times_are_the_medians_of_the_best_round_and_the_next_says_how_noisy_they_are():
    (measured,) = verdict.compare(ROUNDS, "a", "b").values()
    assert (measured.before, measured.after, measured.gain) == (20, 6, pytest.approx(0.7))
    assert measured.noise == pytest.approx(0.6)
    # What was measured once may be an accident.
    assert verdict.compare([sample("a", 0, 10), sample("a", 1, 10), sample("b", 0, 5)], "a", "b") == {}


def test_only_rounds_in_which_the_processors_were_as_near_to_each_other_are_compared():
    near, far = [0.05, 0.05], [0.2, 0.2]
    rounds = [replace(sample("a", at, 10), flag=near) for at in range(2)] + [replace(sample("a", 2, 5), flag=far)]
    rounds += [replace(sample("b", at, 8), flag=near) for at in range(2)]
    (measured,) = verdict.compare(rounds, "a", "b").values()
    assert (measured.before, measured.after) == (10, 8)


def test_two_ways_are_measured_until_rounds_that_may_be_compared_decide(monkeypatch):
    pair = steps.Pair(SimpleNamespace(name="a"), SimpleNamespace(name="b"), [], {4: [("bcast", 64)]})
    monkeypatch.setattr(steps, "_measured", lambda _options, _folder, _terminal, _libraries, choose: choose)
    settings = steps.Settings(Path(), [], [], [4], 64, 1, False, None)
    choose = steps.in_turns("check", [pair], settings, 1.0, None)
    known = {(name, 4): measuring.Known() for name in "ab"}
    near, far = [0.05, 0.05], [0.2, 0.2]
    for name, flag, number in (("a", near, 3), ("b", far, 3), ("a", far, 2), ("b", near, 2)):
        assert choose(name, 4, known) == [("bcast", 64)]
        time = 10 if name == "a" else 5
        known[name, 4].take([replace(sample(name, at, time), flag=flag) for at in range(number)])
    assert choose("a", 4, known) == [("bcast", 64)]
    known["b", 4].take([replace(sample("b", 3, 5), flag=near)])
    assert choose("a", 4, known) == []


def test_with_more_ranks_than_processors_times_are_medians():
    (measured,) = verdict.compare(ROUNDS, "a", "b", processors=2).values()
    assert (measured.before, measured.after) == (32, 7)


def test_an_entry_is_taken_back_at_the_sizes_where_a_program_is_slower():
    evidence = tuple(Measured(n, 10, 5, 0.01) for n in (1, 16, 256, 4096))
    whole = entry(low=1, high=5000, evidence=evidence)
    programs = cases(*[(n, 10, 6, 0.02) for n in (1, 16, 256, 4096)])
    assert verdict.withdraw([whole], programs).kept == [whole]
    programs |= cases((16, 10, 11, 0.3), (256, 10, 12, 0.02), name="bcast@turns@loop@numpy")
    found = verdict.withdraw([whole], programs)
    assert [(kept.low, kept.high, len(kept.evidence)) for kept in found.kept] == [(1, 16, 2), (4096, 5000, 1)]
    ((back, reason),) = found.dropped
    assert (back.low, back.high) == (256, 256)
    assert reason == ("slower in programs at 1 of 4 sizes, by up to 20 % (NumPy, back to back, roots by turns, 256 B)")


def test_an_entry_that_no_program_has_tried_is_dropped():
    unmeasured, programs = entry("reduce = allreduce"), cases((1, 10, 5, 0.01))
    found = verdict.withdraw([unmeasured], programs)
    assert (found.kept, [reason for _, reason in found.dropped]) == ([], ["not measured in programs"])
    # An entry of a file has been in programs before.
    assert verdict.withdraw([unmeasured], programs, keep_unmeasured=True) == verdict.Verdict([unmeasured], [])


def test_each_thread_level_is_judged_by_its_own_programs():
    whole = entry(low=1, high=5000, evidence=tuple(Measured(n, 10, 5, 0.01) for n in (1, 16, 256, 4096)))
    below, multiple = verdict.at_levels([whole])
    assert (below.level, multiple.level) == (BELOW, MULTIPLE)
    programs = cases((1, 10, 6, 0.02), (16, 10, 12, 0.02), (256, 10, 6, 0.02), (4096, 10, 6, 0.02))
    programs |= cases(*[(n, 10, 5 if n > 100 else 9.9, 0.02) for n in (1, 16, 256, 4096)], name="bcast@multiple")
    programs |= cases((4096, 10, 13, 0.02), name="bcast@loop@numpy")
    confirmed = verdict.confirm([below, multiple], programs)
    # What does not gain at MPI_THREAD_MULTIPLE is not kept there, though it is no slower.
    assert [(one.level, one.low, one.high) for one in confirmed.kept] == [(BELOW, 1, 5000), (MULTIPLE, 256, 4096)]
    found = verdict.withdraw(confirmed.kept, programs | cases((256, 10, 5, 0.02), name="bcast@numpy"))
    assert [(one.level, one.low, one.high) for one in found.kept] == [(BELOW, 256, 5000)]
    assert [reason for _, reason in found.dropped] == [
        "slower in programs at 1 of 4 sizes, by up to 20 % (C, 16 B)",
        "slower in programs at 1 of 2 sizes, by up to 30 % (NumPy, back to back, 4 KB)",
    ]


def test_without_programs_in_c_what_numpy_gains_decides_at_multiple():
    multiple = entry(level=MULTIPLE)
    kept = verdict.confirm([multiple], cases((16, 10, 5, 0.02), (64, 10, 9.9, 0.02), name="bcast@numpy")).kept
    assert [(one.low, one.high) for one in kept] == [(16, 63)]
    assert [reason for _, reason in verdict.confirm([multiple], {}).dropped] == ["not measured"]


def test_rows_of_limosas_table_are_for_programs_of_all_levels():
    rows = entry("slots", rows=("bcast shared 4 * - slots",))
    assert verdict.at_levels([rows]) == [rows]


def test_calls_of_programs_are_told_by_their_kind_and_by_whether_they_are_replaced():
    in_c = cases((4, 10, 5, 0.01), (64, 10, 12, 0.01)) | cases((4, 1, 1.02, 0.01), name="scan")
    measured = in_c | cases((4, 10, 5, 0.01), name="bcast@loop@numpy")
    table = report.programs("MPICH", [entry(high=16)], measured)
    assert table.rows == [
        ["C", "1", "0.500", "0", "2", "1.106", "1"],
        ["NumPy, back to back", "1", "0.500", "0", "0", "-", "0"],
    ]
    (row,) = report.losses("MPICH", [entry(high=16)], measured).rows
    assert row == ["bcast", "itself", "4", "64 B", "C", "10.00", "12.00", "1 %"]


def test_long_calls_are_listed_before_and_after():
    measured = cases((16 << 10, 20, 10, 0.01), (20_000, 9, 9, 0.01), (64 << 10, 50, 49.96, 0.01), (64, 1, 1, 0.01))
    measured |= cases((64 << 10, 60, 61, 0.01), name="bcast@multiple") | cases((1 << 20, 1, 1, 0.1), name="bcast@loop")
    table = report.long_calls("MPICH", [entry(low=1, high=20_000, level=BELOW)], measured)
    assert table.columns == ["operation", "threads", "p", "16 KB", "64 KB"]
    assert table.rows == [
        ["bcast", BELOW, "4", "20, 10 *", "50, 50"],
        ["bcast", MULTIPLE, "4", "-", "60, 61"],
    ]


def test_two_tunings_agree_where_they_decide_alike_or_the_difference_is_within_the_noise():
    def tuned(way, low, high, *times):
        return entry(way, low, high, evidence=tuple(Measured(n, 10, after, 0.02) for n, after in times))

    first = [tuned("bcast = allreduce", 16, 63, (16, 5)), tuned("bcast = send", 64, 4096, (64, 9.4), (4096, 5))]
    second = [tuned("bcast = allreduce", 16, 1024, (16, 5.2), (64, 9.4), (1024, 5))]
    sizes = [("bcast", 4, n) for n in (4, 16, 64, 1024, 4096)]
    found = verdict.agreement(first, second, first + second, sizes)
    # At 64 B both ways take as long; 4 B and 16 B are the same decision, and 1024 B costs 5 either way.
    assert (found.changed, found.alike, found.within_noise, found.different) == (4, 1, 2, [("bcast", 4, 4096)])
    assert "agree at 4 of 5 sizes (80 %)" in report.agreement("MPICH", found, len(sizes))


def test_two_tunings_are_compared_at_each_thread_level():
    below = entry("bcast = allreduce", evidence=(Measured(64, 10, 5, 0.02),), level=BELOW)
    multiple = replace(below, evidence=(Measured(64, 10, 9.9, 0.02),), level=MULTIPLE)
    keys = [("bcast", 4, 64), ("bcast@multiple", 4, 64)]
    found = verdict.agreement([below, multiple], [], [below, multiple], keys)
    # At MPI_THREAD_MULTIPLE it makes no difference.
    assert (found.changed, found.within_noise, found.different) == (2, 1, [("bcast", 4, 64)])
    assert "bcast of 64 B (4 ranks, threads: single-serialized)" in report.agreement("MPICH", found, len(keys))


def test_two_files_are_compared_by_the_command(tmp_path, capsys):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        store.write(file, {}, {"mpich": Part("MPICH", "5.0", (entry(evidence=(Measured(64, 10.0, 5.0, 0.01),)),))})
    assert main(["tune", "--compare", *map(str, files)]) == 0
    assert re.search(r"MPICH: the tunings agree at (\d+) of \1 sizes \(100 %\)", capsys.readouterr().out)


# A run ends everything that descends from the process that started it. Two rounds measure each case, wherever the
# processors are meanwhile: a busy machine may not tell.
TWO_ROUNDS = """
import sys
from limosa_lab import flag_time
from limosa_lab.tune import command, steps
flag_time.FlagTime.measure = lambda self: None
steps.MOST_ROUNDS = 2
sys.exit(command.tune(sys.argv[1:]))
"""


def test_a_file_is_verified_in_programs_of_all_kinds_and_what_is_slower_is_taken_back(tmp_path):
    file = tmp_path / "tuning.json"
    rows = ("bcast shared 2 16..64 - slots",)
    evidence = (Measured(64, 10.0, 5.0, 0.01),)
    kept = Entry("bcast", "slots", 2, 16, 64, 0.5, 0.1, rows, evidence)
    store.write(file, {}, {"limosa": Part("Limosa", variants.Plain(None).version, (kept,))})
    text = verified(tmp_path, file)
    for kind in ("C", "C, back to back, roots by turns", "NumPy", "NumPy, back to back"):
        assert min(calls(text, kind)) > 0, text
    # Limosa provides MPI_THREAD_MULTIPLE to all.
    assert "MPI_THREAD_MULTIPLE" not in text
    part = store.read(file)["limosa"]
    assert (part.kept == (kept,)) == (not part.dropped)
    assert all("slower in programs" in reason for _, reason in part.dropped)


def test_a_file_for_one_thread_level_is_verified_by_programs_with_that_level(tmp_path):
    file = tmp_path / "tuning.json"
    evidence = (Measured(64, 10.0, 5.0, 0.01),)
    kept = Entry("bcast", "bcast = allreduce", 2, 16, 64, 0.5, 0.1, (), evidence, level=MULTIPLE)
    version = Mpich.install(print).version
    store.write(file, {}, {"mpich": Part("MPICH", version, (kept,))})
    text = verified(tmp_path, file)
    for kind in ("C", "C, back to back, roots by turns"):
        assert calls(text, kind)[0] == 0 < calls(text, kind)[1], text
    for kind in ("C, MPI_THREAD_MULTIPLE", "C, MPI_THREAD_MULTIPLE, back to back", "NumPy", "NumPy, roots by turns"):
        assert min(calls(text, kind)) > 0, text
    part = store.read(file)["mpich"]
    assert (part.kept == (kept,)) == (not part.dropped)


def verified(tmp_path, file):
    # More minutes than two rounds take on a busy machine.
    words = ["--operations", "bcast", "--ranks", "2", "--max-bytes", "64", "--quick", "--minutes", "20"]
    command = [sys.executable, "-c", TWO_ROUNDS, "--verify", "--file", file, "--output", tmp_path / "out", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900 * PATIENCE)
    assert done.returncode == ("slower beyond the noise, " in done.stdout), done.stderr
    return done.stdout


def calls(text, kind):
    """Give how many calls of programs of a kind were replaced, and how many were not."""
    counts = re.search(rf"^{kind}  +(\d+) +\S+ +\d+ +(\d+)", text, re.MULTILINE)
    assert counts, text
    return int(counts[1]), int(counts[2])


def test_a_violated_guideline_is_listed_with_its_sizes_and_factor():
    times = {"allreduce": lambda n: 30.0 if n == 64 else 8.0, "reduce": lambda n: 5.0, "bcast": lambda n: 5.0}
    measured = {name: [Point(n, 4, time(n)) for n in (4, 16, 64, 256)] for name, time in times.items()}
    (found,) = consistency.violations(measured)
    assert str(found.guideline) == "allreduce = reduce + bcast"
    assert (found.ranks, found.low, found.high, found.at, found.factor) == (4, 64, 64, 64, 3.0)
    table = report.consistency("MPICH", measured)
    assert table.rows == [["allreduce = reduce + bcast", "4", "64 B", "64 B", "1 of 4", "3.00", "64 B"]]


def test_times_between_sizes_are_interpolated_and_none_is_made_up_beyond_them():
    points = [Point(1, 4, 1.0), Point(4, 4, 4.0)]
    assert consistency.time_at(points, 2, 4) == pytest.approx(2)
    assert consistency.time_at(points, 8, 4) is None
    assert consistency.time_at(points, 2, 8) is None


def test_the_file_is_read_as_it_was_written_and_keeps_other_libraries(tmp_path):
    file = tmp_path / "new folder" / "tuning.json"
    kept = entry(low=64, high=4096, evidence=(Measured(64, 10.0, 5.0, 0.01),), curve=((64, 0.4), (4096, 0.5)))
    mpich = Part("MPICH", "5.0", (kept,), ((entry(), "why"),), "It is faster.")
    limosa = Part("Limosa", "0.1.0", (entry("slots", rows=("bcast shared 4 * - slots",)),))
    store.write(file, {"cpu": "any"}, {"mpich": mpich})
    store.write(file, {}, {"limosa": limosa})
    assert store.read(file) == {"mpich": mpich, "limosa": limosa}
    content = json.loads(file.read_text())
    assert content["libraries"]["mpich"]["rules"] == ["bcast=scatter+allgather 4 64-4096"]
    assert content["libraries"]["limosa"]["rows"] == ["bcast shared 4 * - slots"]
    assert file.stat().st_mode & 0o777 == 0o644


def test_rules_that_save_more_come_first():
    assert rules_text([entry(predicted=0.1), entry("bcast = allreduce", predicted=0.3, high=9)]) == (
        "bcast=allreduce 4 1-9;bcast=scatter+allgather 4 1-*"
    )


def test_rules_have_the_thread_level_unless_they_are_the_same_at_all_levels():
    both, one = verdict.at_levels([entry()]), entry("bcast = allreduce", predicted=0.3, level=MULTIPLE)
    assert rules_text([*both, one]) == "bcast=scatter+allgather 4 1-*;bcast=allreduce 4 1-* multiple"
    assert rules_text([replace(both[0], high=9), both[1]]) == (
        "bcast=scatter+allgather 4 1-9 single-serialized;bcast=scatter+allgather 4 1-* multiple"
    )


def test_a_file_without_thread_levels_is_for_all_programs(tmp_path):
    file = tmp_path / "tuning.json"
    store.write(file, {}, {"mpich": Part("MPICH", "5.0", (entry(),))})
    content = json.loads(file.read_text())
    del content["libraries"]["mpich"]["entries"][0]["level"]
    file.write_text(json.dumps(content))
    assert store.read(file)["mpich"].kept == (entry(),)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: "", "is damaged"),
        (lambda text: text[:100], "is damaged"),
        (lambda text: "[]", "is damaged"),
        (lambda text: text.replace('"format": 1', '"format": 7'), "has format 7"),
        (lambda text: text.replace('"processors": ', '"processors": 9'), "was made on another machine"),
        (lambda text: text.replace('"entries"', '"things"'), "is damaged"),
        (lambda text: text.replace('"operation"', '"op"'), "is damaged"),
        (lambda text: text.replace('"level": ""', '"level": "some"'), "`some` is not one of the thread levels single-"),
    ],
)
def test_a_file_that_is_not_to_be_used_is_refused_with_the_reason(tmp_path, change, told):
    file = tmp_path / "tuning.json"
    store.write(file, {}, {"mpich": Part("MPICH", "5.0", [entry()])})
    file.write_text(change(file.read_text()))
    with pytest.raises(LabError, match=told):
        store.read(file)


def test_a_noisy_machine_is_told_with_what_to_do():
    quiet = cases(*[(n, 10, 5, 0.02) for n in range(1, 10)])
    assert report.doubts("MPICH", quiet) == []
    (doubt,) = report.doubts("MPICH", quiet | cases(*[(n, 10, 5, 0.5) for n in range(20, 26)]))
    assert "in 6 of 15 cases repetitions differ by more than 10 %" in doubt
    assert "stop other programs" in doubt


def test_an_interrupted_check_is_repeated_until_both_ways_are_certain():
    wanted = [("bcast", 4), ("bcast", 16), ("scan", 4)]
    sure, open_ = [10.0, 10.1, 12.0], [10.0, 12.0, 14.0]
    own = {("bcast", 4): sure, ("bcast", 16): sure, ("scan", 4): open_}
    other = {("bcast", 4): sure, ("bcast", 16): open_}
    # The least known with the library itself comes first; what one of both has lost is not compared.
    assert plan.compared(wanted, own, own, other, set(), 3) == [("bcast", 16), ("scan", 4)]
    assert plan.compared(wanted, other, own, other, set(), 3) == [("scan", 4), ("bcast", 16)]
    assert plan.compared(wanted, own, own, other, {("scan", 4)}, 3) == [("bcast", 16)]


@pytest.mark.parametrize(
    ("gain", "rounds"), [(0.5, 3), (0.1, plan.CONFIRMED), (0.0, 3), (-0.1, plan.CONFIRMED), (-1.0, plan.CONFIRMED)]
)
def test_small_gains_and_all_losses_are_confirmed_by_more_rounds(gain, rounds):
    before, after = [10.0, 10.1, 12.0], [10 * (1 - gain), 10.1 * (1 - gain), 12.0]
    more = rounds - len(before)
    for added in range(more):
        assert not plan.decided(before + added * [12.0], after + added * [12.0], 3)
    assert plan.decided(before + more * [12.0], after + more * [12.0], 3)


@pytest.mark.parametrize(
    ("left", "told"),
    [
        ({"tuning.json": "{}", "arguments.json": "[]"}, "is complete"),
        ({"arguments.json": "[7"}, "arguments.json is damaged"),
        ({}, "name the folder of a `limosa tune` that was interrupted"),
    ],
)
def test_what_cannot_go_on_is_told_in_a_sentence(tmp_path, left, told, capsys):
    for name, text in left.items():
        (tmp_path / name).write_text(text)
    assert main(["tune", "--resume", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_with_a_tuning_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "arguments.json").write_text("[]")
    assert main(["tune", "--output", str(tmp_path)]) == 2
    assert "holds a tuning already" in capsys.readouterr().err


def test_a_file_of_another_version_has_nothing_to_verify(tmp_path, capsys):
    file = tmp_path / "tuning.json"
    store.write(file, {}, {"limosa": Part("Limosa", "0.0.1", (entry("slots", rows=("bcast shared 4 * - slots",)),))})
    assert main(["tune", "--verify", "--file", str(file), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "is for version 0.0.1 of Limosa" in told
    assert "has nothing to verify" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--verify", "--file", "/no/such/file"], "cannot read /no/such/file"),
        (["--from", "/no/such/folder"], "there is no samples.jsonl"),
        (["--against", "nompi"], "`nompi` is not a library"),
        (["--programs", "c,fortran"], "--programs fortran: known are c, numpy"),
        (["--max-bytes", "3"], "models need messages of 64 bytes"),
        (["--minutes", "0"], "a positive number is needed"),
        (["--resume", "/no/such/folder"], "name the folder of a `limosa tune` that was interrupted"),
    ],
)
def test_wrong_options_are_told_in_a_sentence(words, told, capsys):
    assert main(["tune", *words]) == 2
    assert told in capsys.readouterr().err
