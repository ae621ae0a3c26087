"""Files that drawings go into: all of the new one, or what was there."""

from pathlib import Path

import pytest

from petard_worker.cli.elo.facts import points, rating
from petard_worker.cli.elo.new_file import write_new
from petard_worker.cli.errors import CommandFailed


def test_a_file_that_is_there_is_replaced_by_force_only(tmp_path: Path) -> None:
    file = tmp_path / "curve.svg"
    write_new(file, b"old", force=False)

    with pytest.raises(CommandFailed, match="exists already: --force overwrites it"):
        write_new(file, b"new", force=False)
    assert file.read_bytes() == b"old"
    write_new(file, b"new", force=True)

    assert file.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["curve.svg"]


@pytest.mark.parametrize("force", [True, False])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    file = tmp_path / "sheet.pdf"
    if force:
        file.write_bytes(b"old")
    disk_full = OSError(28, "No space left on device")

    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def write(self, _content: bytes) -> None:
            raise disk_full

    def opens(path: Path, mode: str = "r", *_: object, **__: object) -> Full:
        with open(path, mode):  # noqa: PTH123 - the real one is replaced
            return Full()

    monkeypatch.setattr(Path, "open", opens)

    with pytest.raises(CommandFailed, match=r"cannot write .*sheet\.pdf: No space left on device"):
        write_new(file, b"new", force=force)
    monkeypatch.undo()

    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([b"old"] if force else [])


def test_rights_of_a_file_that_is_replaced_stay(tmp_path: Path) -> None:
    file = tmp_path / ("棋" * 82 + ".pdf")  # as long as a name may be
    file.write_bytes(b"old")
    file.chmod(0o600)

    write_new(file, b"new", force=True)

    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.svg").write_bytes(b"old")
    (tmp_path / "link.svg").symlink_to("real.svg")

    write_new(tmp_path / "link.svg", b"new", force=True)

    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "real.svg").read_bytes() == b"new"


@pytest.mark.parametrize("value", [0.0, -0.0, -0.001, 0.004])
def test_nothing_is_shown_without_a_minus(value: float) -> None:
    assert (rating(value), points(value)) == ("0", "+0.00")
