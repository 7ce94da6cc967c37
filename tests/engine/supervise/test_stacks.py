"""Stacks of a dead process are read from the dump that Python's fault handler wrote."""

from pathlib import Path

from batuta.supervise.stacks import StackFolder, main_thread_first

OTHER = 'Thread 0x00007f01 (most recent call first):\n  File "threading.py", line 982 in run'
MAIN = 'Current thread 0x00007f02 (most recent call first):\n  File "app.py", line 7 in work\n  File "main.py", line 1 in <module>'


def test_dump_of_an_aborted_process_has_its_main_thread_first() -> None:
    dump = f"Fatal Python error: Aborted\n\n{OTHER}\n\n{MAIN}\n\nExtension modules: a, b (total: 2)\n"
    assert main_thread_first(dump) == f"Fatal Python error: Aborted\n{MAIN}\n\n{OTHER}"


def test_dump_of_a_timeout_has_its_main_thread_first() -> None:
    assert main_thread_first(f"Timeout (0:00:16)!\n{OTHER}\n\n{MAIN}\n") == f"Timeout (0:00:16)!\n{MAIN}\n\n{OTHER}"


def test_dump_without_threads_is_unchanged() -> None:
    assert main_thread_first("") == ""
    assert main_thread_first("Fatal Python error: Aborted") == "Fatal Python error: Aborted"
    assert main_thread_first(f"Timeout (0:00:16)!\n{MAIN}\n") == f"Timeout (0:00:16)!\n{MAIN}"


def test_stack_is_read_only_from_a_file_of_our_own_folder(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of another program")
    stacks = StackFolder(tmp_path / "stacks")
    with stacks.open("worker", 7) as dump:
        dump.write("Timeout!")
    (stacks.folder / "worker-8.stack").symlink_to(secret)
    assert stacks.take("worker", 8) is None
    assert stacks.take("worker", 7) == "Timeout!"
    with stacks.open("worker", 9) as dump:
        dump.write("Timeout!")
    stacks.folder.chmod(0o777)  # any user may put files there
    assert stacks.take("worker", 9) is None
    linked = StackFolder(tmp_path / "linked")
    linked.folder.symlink_to(stacks.folder)
    stacks.folder.chmod(0o700)
    assert linked.take("worker", 9) is None
