"""The I/O threads: order, errors, cancelling, stalls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.cancel import CancelToken
from engine.errors import Cancelled, ReadError
from engine.weights import reader as reader_module
from engine.weights.buffers import aligned_buffer
from engine.weights.ranges import BLOCK, ByteRange, lay_out
from engine.weights.reader import CHUNK, Priority, Reader, Request, Stall
from tests.engine.weights.faulty import FaultyFiles

SIZE = 3 * CHUNK + 1000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("reader") / "weights.bin"
    file.write_bytes(np.random.default_rng(1).integers(0, 256, SIZE, np.uint8).tobytes())
    return file


@pytest.fixture(params=[True, False], ids=["direct", "buffered"])
def reader(request: pytest.FixtureRequest, files: FaultyFiles) -> Iterator[Reader]:
    made = Reader(files, direct=request.param, threads=1)
    yield made
    files.gate.set()
    made.close()
    assert files.opened == files.closed


def ask(reader: Reader, path: Path, offset: int, nbytes: int, priority: Priority = Priority.DEMAND) -> Request:
    layout = lay_out([ByteRange(path, offset, nbytes)])
    with reader.lock:
        return reader.submit("unit", layout, aligned_buffer(layout.nbytes), priority)


def wait(reader: Reader, request: Request, cancel: CancelToken | None = None) -> None:
    with reader.lock:
        reader.wait("unit", lambda: request.done, cancel)


def test_bytes_arrive_also_the_last_ones_of_a_file(reader: Reader, path: Path) -> None:
    content = path.read_bytes()
    for offset, nbytes in ((0, SIZE), (5000, CHUNK), (SIZE - 7, 7)):
        request = ask(reader, path, offset, nbytes)
        wait(reader, request)
        assert request.error is None
        begin = offset % BLOCK
        assert request.buffer[begin : begin + nbytes].tobytes() == content[offset : offset + nbytes]


def test_what_is_waited_for_comes_before_what_is_read_ahead(reader: Reader, files: FaultyFiles, path: Path) -> None:
    files.gate.clear()
    first = ask(reader, path, 0, 10, Priority.AHEAD)  # keeps the only thread busy
    while not files.opened:
        threading.Event().wait(0.001)
    guess = ask(reader, path, 1 * BLOCK, 10, Priority.IDLE)
    ahead = ask(reader, path, 2 * BLOCK, 10, Priority.AHEAD)
    demand = ask(reader, path, 3 * BLOCK, 10, Priority.DEMAND)
    promoted = ask(reader, path, 4 * BLOCK, 10, Priority.IDLE)
    with reader.lock:
        reader.promote(promoted)
    files.gate.set()
    for request in (first, guess, ahead, demand, promoted):
        wait(reader, request)
    assert [offset // BLOCK for _, offset, _ in files.reads] == [0, 3, 4, 2, 1]


def test_an_error_names_file_and_place_and_the_next_read_opens_it_anew(
    reader: Reader, files: FaultyFiles, path: Path
) -> None:
    files.errors[path.name] = 5
    request = ask(reader, path, 2 * CHUNK, 100)
    wait(reader, request)
    assert request.error is not None
    assert path.name in str(request.error)
    assert f"byte {2 * CHUNK}" in str(request.error)
    files.errors.clear()
    request = ask(reader, path, 2 * CHUNK, 100)
    wait(reader, request)
    assert request.error is None
    assert files.opened[path.name] == 2


def test_the_rest_of_a_failed_request_is_not_read(reader: Reader, files: FaultyFiles, path: Path) -> None:
    files.errors[path.name] = 5
    wait(reader, ask(reader, path, 0, SIZE))
    assert len(files.reads) == 1


def test_a_file_that_was_cut_short(reader: Reader, files: FaultyFiles, path: Path) -> None:
    files.ends[path.name] = CHUNK + 500
    request = ask(reader, path, 0, SIZE)
    wait(reader, request)
    assert isinstance(request.error, ReadError)
    assert f"ends at byte {CHUNK + 500}" in str(request.error)


def test_a_file_that_is_gone(reader: Reader, files: FaultyFiles, path: Path) -> None:
    files.missing.add(path.name)
    request = ask(reader, path, 0, 10)
    wait(reader, request)
    assert "No such file" in str(request.error)


def test_cancel_while_the_disk_stalls(reader: Reader, files: FaultyFiles, path: Path) -> None:
    files.gate.clear()
    request = ask(reader, path, 0, 10)
    token = CancelToken()
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(Cancelled):
        wait(reader, request, token)
    files.gate.set()
    wait(reader, request)  # it goes on, for whoever wants it next
    assert request.error is None


def test_a_stall_is_reported_with_its_place(
    reader: Reader, files: FaultyFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "_STALL_AFTER", 0.01)
    monkeypatch.setattr(reader_module, "_REPORT_EVERY", 0.01)
    monkeypatch.setattr(reader_module, "_POLL", 0.01)
    stalls: list[Stall] = []

    def note(stall: Stall) -> None:
        stalls.append(stall)
        files.gate.set()

    reader.on_stall = note
    files.gate.clear()
    wait(reader, ask(reader, path, 2 * BLOCK, 10))
    assert (stalls[0].what, stalls[0].file, stalls[0].offset) == ("unit", path.name, 2 * BLOCK)


def test_a_dropped_request_stops_between_chunks(reader: Reader, files: FaultyFiles, path: Path) -> None:
    files.gate.clear()
    request = ask(reader, path, 0, SIZE)
    while not files.opened:
        threading.Event().wait(0.001)
    with reader.lock:
        reader.drop(request)
        assert not request.done  # a read still writes into its buffer
    files.gate.set()
    wait(reader, request)
    assert len(files.reads) == 1


def test_an_unforeseen_error_is_an_answer_too(reader: Reader, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(reader_module, "read_exactly", fail)
    request = ask(reader, path, 0, 10)
    wait(reader, request)
    assert "odd" in str(request.error)


def test_nothing_to_read_is_done_at_once(reader: Reader) -> None:
    with reader.lock:
        assert reader.submit("nothing", lay_out([]), aligned_buffer(0), Priority.DEMAND).done


def test_a_buffer_that_is_too_small_is_refused(reader: Reader, path: Path) -> None:
    with reader.lock, pytest.raises(ValueError, match="buffer of 8192 bytes"):
        reader.submit("unit", lay_out([ByteRange(path, 0, 5000)]), aligned_buffer(BLOCK), Priority.DEMAND)


def test_who_waits_while_the_reader_closes_is_let_go(files: FaultyFiles, path: Path) -> None:
    closing = Reader(files, direct=False, threads=1)
    files.gate.clear()
    request = ask(closing, path, 0, SIZE)
    threading.Timer(0.05, closing.close, [0.01]).start()
    with pytest.raises(Cancelled):
        wait(closing, request)
    files.gate.set()


def test_counters(reader: Reader, path: Path) -> None:
    wait(reader, ask(reader, path, 100, 2 * BLOCK))
    with reader.lock:
        assert reader.bytes_read == 3 * BLOCK
        assert reader.busy_seconds > 0
        assert reader.idle


def test_close_does_not_wait_for_a_stuck_disk(files: FaultyFiles, path: Path) -> None:
    files.gate.clear()
    stuck = Reader(files, direct=False, threads=2)
    ask(stuck, path, 0, 10)
    while not files.opened:
        threading.Event().wait(0.001)
    stuck.close(patience=0.05)
    files.gate.set()  # the fixture of all tests sees to it that the thread ends now


def test_a_file_system_without_direct_reads(files: FaultyFiles, path: Path) -> None:
    files.direct = False
    plain = Reader(files, direct=True, threads=2)
    request = ask(plain, path, 3, SIZE - 3)
    wait(plain, request)
    plain.close()
    assert request.buffer[3:SIZE].tobytes() == path.read_bytes()[3:]
