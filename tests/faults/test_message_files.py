"""Troubles with the files that messages travel in: both partners are told, and no other rank is disturbed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from test_files import mounted

#: How processes learn of files, and how they wait.
CARRIERS = [{}, {"LIMOSA_FILE_NOTIFY": "clock"}, {"LIMOSA_WAIT": "block"}]

pytestmark = pytest.mark.usefixtures("limosa")


def look_at(running) -> None:
    outcome = running.wait(60)
    assert outcome.code == 0, outcome.text
    assert sorted(outcome.out.splitlines()) == [f"rank {rank} done" for rank in range(3)]


def without_rights_of_root() -> list[str]:
    """The start of a command that file permissions hold for, as they do for users."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (util-linux), to give up root's rights")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


@pytest.mark.parametrize("env", CARRIERS, ids=str)
def test_a_full_disk_is_told_to_all_who_exchange_messages(job, program, tmp_path, env):
    wrapper = mounted(tmp_path, f"mount -t tmpfs -o size=4m none {tmp_path}")
    env = {**env, "LIMOSA_DEVICE": f"file:{tmp_path}"}
    look_at(job([program("message_files"), "full", tmp_path], n=3, env=env, wrapper=wrapper))


@pytest.mark.parametrize("env", CARRIERS, ids=str)
def test_a_message_for_which_there_is_no_room_is_told_to_both_partners(job, program, tmp_path, env):
    env = {**env, "LIMOSA_DEVICE": f"file:{tmp_path}"}
    look_at(job([program("message_files"), "one", tmp_path], n=3, env=env))


@pytest.mark.parametrize("env", CARRIERS, ids=str)
def test_a_folder_without_permission_is_told_to_both_partners(job, program, tmp_path, env):
    env = {**env, "LIMOSA_DEVICE": f"file:{tmp_path}"}
    look_at(job([program("message_files"), "denied", tmp_path], n=3, env=env, wrapper=without_rights_of_root()))


@pytest.mark.parametrize("env", CARRIERS, ids=str)
def test_a_deleted_folder_is_told_to_all(job, program, tmp_path, env):
    env = {**env, "LIMOSA_DEVICE": f"file:{tmp_path}"}
    look_at(job([program("message_files"), "deleted", tmp_path], n=3, env=env))


def test_a_relative_folder_is_refused(job, program, python, tmp_path):
    env = {"LIMOSA_DEVICE": "file:messages"}
    outcome = job([program("message_files"), "full", tmp_path], n=2, env=env).wait(20)
    assert outcome.code == 2, outcome.text
    assert "absolute path" in outcome.err and "`messages`" in outcome.err, outcome.err
    alone = subprocess.run(
        [python, "-c", "from mpi4py import MPI"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert alone.returncode != 0 and "absolute path" in alone.stderr, alone.stderr


def test_messages_that_are_kept_can_be_listed(job, program, limosa, tmp_path):
    command = [program("message_files"), "kept", tmp_path]
    outcome = job(command, n=3, options=["--device", f"file:{tmp_path}", "--keep-messages"]).wait(30)
    assert outcome.code == 0, outcome.text
    listed = subprocess.run([limosa, "messages", "--format=json", tmp_path], capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    packets = [
        (file["from"], file["to"], packet["source"], packet["tag"], packet["bytes"])
        for file in json.loads(listed.stdout)
        for packet in file["packets"]
        if packet["what"] == "message" and packet["tag"] in (1, 2)
    ]
    assert packets == [(0, 1, 0, 1, 300), (0, 2, 0, 2, 5)], listed.stdout
    text = subprocess.run([limosa, "messages", tmp_path], capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["0", "1", "received", "1", "300", "message"] in [row[:2] + row[3:] for row in rows if len(row) == 7], text
    assert not [row for row in rows if "waiting" in row], text
