"""Files are written completely or not at all, and writers that were killed leave no draft behind."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from jaxdyn import FileAccessError
from jaxdyn.io.files import _write, write_bytes

from .._architecture import ROOT

_KILLED = """
import os, signal, sys
from jaxdyn.io.files import write_bytes
def stop(handle):
    print("draft", flush=True)
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()  # holds the draft until its end
os.fsync = stop
write_bytes(sys.argv[1], b"half")
"""


def start_writer(path, how):
    return subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(path), how],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def names(folder):
    return sorted(x.name for x in folder.iterdir())


@pytest.mark.slow
def test_draft_of_a_killed_writer_is_removed(tmp_path):
    path = tmp_path / "run.csv"
    bystanders = (".run.csv.notadraft", ".run.csv.0123456789abcdef", ".other.csv.0123456789ab", "run.csv.0123456789ab")
    for name in bystanders:
        (tmp_path / name).touch()
    killed = start_writer(path, "kill")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL and len(names(tmp_path)) == len(bystanders) + 1
    living = start_writer(path, "wait")
    try:
        assert living.stdout.readline() == b"draft\n"
        assert len(names(tmp_path)) == len(bystanders) + 1, "the draft of the killed writer is gone"
        write_bytes(path, b"whole")
        assert path.read_bytes() == b"whole"
        assert len(names(tmp_path)) == len(bystanders) + 2, "the draft of the living writer stays"
        living.communicate(timeout=60)
        assert living.returncode == 0 and path.read_bytes() == b"half"
    finally:
        living.kill()
        living.communicate()
    assert names(tmp_path) == sorted(("run.csv", *bystanders))


def test_concurrent_writers_do_not_remove_each_others_drafts(tmp_path):
    path, errors = tmp_path / "run.csv", []

    def write_often(content):
        try:
            for _ in range(50):
                write_bytes(path, content)
        except FileAccessError as error:
            errors.append(error)

    threads = [threading.Thread(target=write_often, args=(bytes([65 + k]) * 100,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and names(tmp_path) == ["run.csv"]
    assert len(set(path.read_bytes())) == 1


def test_draft_that_was_removed_before_its_lock_is_created_again(tmp_path, monkeypatch):
    lock, calls = _write._lock, []

    def lock_late(handle, *, wait):
        calls.append(handle)
        if len(calls) == 1:
            for draft in tmp_path.iterdir():
                draft.unlink()
        return lock(handle, wait=wait)

    monkeypatch.setattr(_write, "_lock", lock_late)
    write_bytes(tmp_path / "run.csv", b"whole")
    assert len(calls) == 2 and (tmp_path / "run.csv").read_bytes() == b"whole" and names(tmp_path) == ["run.csv"]


def test_writes_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(_write, "fcntl", None)
    stale = tmp_path / ".run.csv.0123456789ab"
    stale.touch()
    write_bytes(tmp_path / "run.csv", b"whole")
    assert (tmp_path / "run.csv").read_bytes() == b"whole" and stale.exists()


def test_failed_writes_name_the_file_and_leave_nothing(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (folder, tmp_path / "none" / "x", tmp_path / "a\0b", tmp_path / ("x" * 300)):
        with pytest.raises(FileAccessError, match="cannot be written"):
            write_bytes(path, b"")
    assert names(tmp_path) == ["folder"]
