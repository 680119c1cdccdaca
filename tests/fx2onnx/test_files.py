"""What is written is whole, and takes the place of nothing but a file."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from fx2onnx.files import atomic_write, check_replaceable


def write(path: Path, text: str = "new") -> None:
    with atomic_write(path) as draft:
        draft.write_text(text)


def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(target) as draft:  # noqa: PT012 - the block is what is tested
        draft.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_what_is_written_beside_it_is_moved_with_it(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.bin") as draft:
        draft.write_text("new")
        draft.with_name("a.bin.data").write_text("companion")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.bin", "a.bin.data"]


def test_a_pipe_and_a_socket_stay_what_they_are(tmp_path: Path) -> None:
    pipe, listening = tmp_path / "pipe", tmp_path / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(listening))
        for path in (pipe, listening):
            with pytest.raises(FileExistsError, match=r"cannot write .*: it is a device, a pipe or a socket"):
                write(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISSOCK(listening.stat().st_mode)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    kept, link = tmp_path / "store" / "kept.bin", tmp_path / "link.bin"
    kept.write_text("old")
    link.symlink_to(kept)
    write(link)
    assert link.is_symlink()
    assert kept.read_text() == "new"
    assert [entry.name for entry in kept.parent.iterdir()] == ["kept.bin"]


def test_a_link_to_a_device_or_into_no_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to_pipe").symlink_to(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing" / "a.bin")
    with pytest.raises(FileExistsError, match="a device, a pipe"):
        write(tmp_path / "to_pipe")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write(tmp_path / "nowhere")


def test_permissions_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_text("old")
    target.chmod(0o640)
    write(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() == 0, reason="for root no file is read-only")
def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_text("old")
    target.chmod(0o400)
    with pytest.raises(PermissionError, match="read-only"):
        write(target)


def test_the_longest_name_that_a_file_may_have(tmp_path: Path) -> None:
    write(tmp_path / ("n" * 255))
    assert (tmp_path / ("n" * 255)).read_text() == "new"


def test_a_folder_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="it is a folder; pass the path of a file"):
        check_replaceable(tmp_path)
