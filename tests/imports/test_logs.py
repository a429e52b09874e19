"""Logs as streams of lines."""

import bz2
import gzip
import json
import lzma
import subprocess
from pathlib import Path

import pytest

from readtrack.imports import arrays
from readtrack.imports.ledger import ImportRefusedError
from readtrack.imports.logs import LONGEST, LogFile


def read(path: Path) -> list[tuple[bytes, int]]:
    with path.open("rb") as file:
        return list(LogFile(file).lines())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.log"


@pytest.mark.parametrize("is_packed", [False, True])
def test_lines_come_with_where_they_end(path: Path, *, is_packed: bool) -> None:
    data = b"one\n\ntwo\r\n"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    assert read(path) == [(b"one", 4), (b"", 5), (b"two", 10)]


def test_a_line_without_its_end_is_left_for_later(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    assert read(path) == [(b"one", 4)]
    path.write_bytes(b"tw")
    with path.open("rb") as file:
        log = LogFile(file)
        assert (list(log.lines()), log.first) == ([], b"")


def test_a_line_too_long_is_passed_over_in_pieces(path: Path) -> None:
    size = 3 * LONGEST + 7
    path.write_bytes(b"x" * size + b"\ntwo\n" + b"y" * size)
    assert read(path) == [(b"", size + 1), (b"two", size + 5)]
    with path.open("rb") as file:
        assert LogFile(file).first == b"x" * LONGEST


def many(count: int = 20_000) -> bytes:
    return b"".join(
        b"line %d of many %x\n" % (number, number * 2654435761 % 2**32) for number in range(count)
    )


@pytest.mark.parametrize("cut", [1, 8, 9, 1000, 54_321])
def test_a_gzip_file_that_was_cut_gives_what_gzip_gives(path: Path, cut: int) -> None:
    packed = gzip.compress(many())[:-cut]
    path.write_bytes(packed)
    given = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=False).stdout
    assert given.count(b"\n") > 10_000
    with path.open("rb") as file:
        log = LogFile(file)
        lines = list(log.lines())
        assert log.is_damaged
    assert b"".join(raw + b"\n" for raw, _ in lines) == given[: given.rindex(b"\n") + 1]


@pytest.mark.parametrize(
    ("behind", "is_damaged"), [(b"", False), (b"\0" * 40_000, False), (b"nonsense", True)]
)
def test_members_of_a_gzip_file_are_one_log(path: Path, behind: bytes, *, is_damaged: bool) -> None:
    path.write_bytes(
        gzip.compress(b"one\n") + gzip.compress(b"") + b"\0\0" + gzip.compress(b"two\n") + behind
    )
    with path.open("rb") as file:
        log = LogFile(file)
        assert [raw for raw, _ in log.lines()] == [b"one", b"two"]
        assert log.is_damaged == is_damaged


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bz2.compress(b"one\n"), "is bzip2. Convert it first: bunzip2 --keep"),
        (b"\x04\x22\x4d\x18rest", "is lz4. Convert it first: unlz4"),
        (lzma.compress(b"one\n"), "is xz. Convert it first: unxz --keep"),
        ("one\n".encode("utf-16"), "is UTF-16. Convert it first: iconv -f UTF-16 -t UTF-8"),
    ],
)
def test_a_file_in_another_form_is_refused_with_the_command_that_converts_it(
    path: Path, data: bytes, words: str
) -> None:
    path.write_bytes(data)
    with path.open("rb") as file, pytest.raises(ImportRefusedError, match=words) as refusal:
        LogFile(file)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("harm", ["cut", "changed", "head"])
def test_of_a_damaged_file_the_sound_part_is_read(path: Path, harm: str) -> None:
    packed = bytearray(gzip.compress(b"".join(b"line %d\n" % number for number in range(200_000))))
    if harm == "cut":
        del packed[len(packed) // 2 :]
    else:
        packed[len(packed) // 2 if harm == "changed" else 2] ^= 0xFF
    path.write_bytes(packed)
    with path.open("rb") as file:
        log = LogFile(file)
        lines = list(log.lines())
        assert log.is_damaged
        assert (log.first == b"") == (harm == "head")
        assert (len(lines) > 1000) == (harm != "head")
        assert log.digest_at(10_000_000) is None
        assert log.digest_at(1 << 40) is None


def test_digests_identify_the_log_before_a_position(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthr")
    with path.open("rb") as file:
        log = LogFile(file)
        lines = log.lines()
        next(lines)
        after_one = log.digest()
        assert (log.digest_at(4), log.digest_at(99)) == (after_one, None)
        assert log.digest_at(6) != log.digest_at(8)
        assert log.digest_at(8) not in {after_one, log.digest_at(0), None}
        assert log.digest_at(11)
        assert log.digest_at(12) is None


def test_a_packed_log_has_the_digests_of_the_plain_one(tmp_path: Path) -> None:
    data = b"line\n" * 1000
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    with (tmp_path / "plain").open("rb") as plain, (tmp_path / "packed").open("rb") as packed:
        one, other = [LogFile(file).digest_at(5000) for file in (plain, packed)]
    assert one == other
    assert one is not None


def test_entries_that_are_not_on_a_line_each_are_read_as_lines(path: Path) -> None:
    entries = [
        {"path": f"/{number}/", "of": {"list": [1, {}]}, "text": '}],"{'} for number in range(9)
    ]
    written = {
        "array": json.dumps(entries),
        "array on several lines": json.dumps(entries, indent=2) + "\n",
        "records": json.dumps({"records": entries}),
        "records on each line": "\n".join(json.dumps({"records": [entry]}) for entry in entries),
        "arrays on each line": "\n".join(json.dumps([entry]) for entry in entries) + "\n",
        "entries on several lines": "\n".join(json.dumps(entry, indent=1) for entry in entries),
        "with a byte order mark": "\ufeff" + json.dumps(entries),
    }
    for name, text in written.items():
        for data in (text.encode(), gzip.compress(text.encode())):
            path.write_bytes(data)
            lines = read(path)
            assert [json.loads(raw) for raw, _ in lines] == entries, name
            assert lines[-1][1] == len(text.encode()), name


def test_positions_of_entries_are_bytes(path: Path) -> None:
    path.write_text('[{"a":"\u00fc"},\n{"b":2}]\n')
    assert [end for _, end in read(path)] == [11, 22]


def test_an_entry_without_its_end_is_left_for_later(path: Path) -> None:
    path.write_bytes(b'[{"a":1},{"b":2')
    with path.open("rb") as file:
        log = LogFile(file)
        assert list(log.lines()) == [(b'{"a":1}', 8)]
        assert log.has_open_end
        assert log.digest_at(8) == log.digest()
    path.write_bytes(b'[{"a":1},{"b":2}')
    assert read(path) == [(b'{"a":1}', 8), (b'{"b":2}', 16)]


@pytest.mark.parametrize(
    "data",
    [b'[{"a":1},nonsense\n{"b":2}]', b'[{"a":1},' + b'{"x":' * 100_000 + b'1\n{"b":2}]'],
)
def test_nonsense_among_entries_is_one_line(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    first, nonsense, last = [raw for raw, _ in read(path)]
    assert (first, last) == (b'{"a":1}', b'{"b":2}')
    assert not nonsense.startswith(b'{"a"')


def test_an_entry_that_is_too_long_does_not_fill_the_memory(path: Path) -> None:
    path.write_bytes(b'[{"a":"' + b"x" * 3 * arrays.LONGEST + b'"},\n{"b":2}]')
    with path.open("rb") as file:
        assert max(map(len, arrays.pieces_of(file))) < 2 * arrays.LONGEST
    assert [raw for raw, _ in read(path)] == [b"", b'{"b":2}']


CUT = "x" * 9000


@pytest.mark.parametrize(
    "lines",
    [
        [f"2026-03-01T12:00:00Z stdout {text}" for text in (f"P {CUT}", f"P {CUT}", "F y", "F z")],
        [
            json.dumps({"log": text, "stream": "stdout", "time": "t"}, separators=(",", ":"))
            for text in (CUT, CUT, "y\n", "z\n")
        ],
    ],
)
def test_the_pieces_of_a_line_of_a_container_are_joined(path: Path, lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(data)
    (joined, end), (rest, last_end) = read(path)
    assert joined == f"{CUT}{CUT}y".encode()
    assert rest == lines[-1].encode()
    assert (end, last_end) == (len(data) - len(rest) - 1, len(data))
    path.write_bytes(data[: data.index(b"\n") + 1])
    assert read(path) == []


def test_the_streams_of_a_container_have_pieces_of_their_own(path: Path) -> None:
    pieces = ["stdout P a", "stderr P b", "stderr F c", "stdout P:x d", "stdout F e"]
    path.write_text("".join(f"2026-03-01T12:00:00Z {piece}\n" for piece in pieces))
    assert [raw for raw, _ in read(path)] == [b"bc", b"ade"]


def test_a_log_that_ends_with_a_piece_is_recognised_when_it_has_grown(path: Path) -> None:
    lines = ["F one", "P tw", "F o", "P thr"]
    data = "".join(f"2026-03-01T12:00:00Z stdout {line}\n" for line in lines).encode()
    path.write_bytes(data)
    with path.open("rb") as file:
        log = LogFile(file)
        ends = [end for _, end in log.lines()]
        assert log.digest_at(ends[-1]) == log.digest()
    assert len(ends) == 2


def test_a_line_of_very_many_pieces_is_bounded(path: Path) -> None:
    path.write_text(
        "2026-03-01T12:00:00Z stdout P xx\n" * 1000 + "2026-03-01T12:00:00Z stdout F y\n"
    )
    [(joined, _)] = read(path)
    assert len(joined) < 200
