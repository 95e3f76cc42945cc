"""The measurement is bounded and picks the smallest depth that is near the best."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, ReadError
from engine.weights import speed
from engine.weights.ranges import BLOCK
from engine.weights.speed import ReadSpeed, measure_read_speed
from tests.engine.weights.faulty import FaultyFiles


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "weights.bin"
    file.write_bytes(bytes(5 * BLOCK + 17))
    return file


def test_it_reads_no_more_than_it_may(path: Path, files: FaultyFiles) -> None:
    result = measure_read_speed(path, seconds=60, most_bytes=40 * BLOCK, depths=(1, 2), files=files)
    assert result.bytes_per_s > 0
    assert result.bytes_read <= 25 * BLOCK
    assert sum(size for _, _, size in files.reads) <= 50 * BLOCK
    assert files.opened == files.closed


def test_whole_blocks_inside_the_file(path: Path, files: FaultyFiles) -> None:
    measure_read_speed(path, seconds=0, depths=(8,), files=files)
    assert all(offset % BLOCK == 0 and offset + size <= 5 * BLOCK for _, offset, size in files.reads)


@pytest.mark.parametrize(("speeds", "depth"), [((100, 105, 109), 4), ((100, 190, 200), 8), ((2, 4, 8), 16)])
def test_the_smallest_depth_that_is_near_the_best(
    path: Path, monkeypatch: pytest.MonkeyPatch, speeds: tuple[int, ...], depth: int
) -> None:
    results = [ReadSpeed(float(s), d, True, 1, 1.0) for s, d in zip(speeds, speed.DEPTHS, strict=True)]
    monkeypatch.setattr(speed._Trial, "run", lambda self, depth, places: results.pop(0))
    assert measure_read_speed(path).depth == depth


@pytest.mark.parametrize("chunks", [1, 2, 3, 8, 10, 97])
def test_every_place_comes_once_before_any_comes_again(chunks: int) -> None:
    places = speed._places(chunks)
    assert sorted(next(places) for _ in range(chunks)) == list(range(chunks))
    assert 0 <= next(places) < chunks


def test_errors_name_the_file(path: Path, files: FaultyFiles, tmp_path: Path) -> None:
    files.errors[path.name] = 5
    with pytest.raises(ReadError, match=path.name):
        measure_read_speed(path, files=files)
    with pytest.raises(ReadError, match=r"gone\.bin"):
        measure_read_speed(tmp_path / "gone.bin")
    (tmp_path / "empty.bin").touch()
    with pytest.raises(ReadError, match="too few"):
        measure_read_speed(tmp_path / "empty.bin")
    assert files.opened == files.closed


def test_cancel(path: Path) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        measure_read_speed(path, cancel=token)
