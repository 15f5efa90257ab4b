"""Tests of simulate, read_trace and write_trace: pytest python/tests/trace_test.py, with the path of the program in VRAMYARD."""

import pickle
import random
import subprocess

import pytest

import vramyard
from vramyard import _events, _program

TRACE = "cpu_unet_train"
EVENTS = [("alloc", 1, 1000), ("alloc", 2, 5 << 20, 7), ("use", 2, 3), ("mark", 'step "1"'), ("free", 1), ("trim",), ("free", 2)]

# Every kind that the text form has, save illegal frees and prints, which are for tests of allocators.
EVERY_KIND = """# name=every
# framework=PyTorch
live 9 4096 stream=1 tag="ä b" t=0
a 1 512 align=512 stream=2 hint=low tag=x site=0x9ae16a3b2f90404f thread=3 life=step t=1000
use 1 4 t=2000
frontier 3
a 2 100 before=2
pool begin 1
pool begin 2 stream=5 options=use_on_oom,no_split
pool end 1
pool end 2
mark "step \\"1\\""
refused 7000 stream=1 tag="a=b"
f 1
done 1
trim
poll
drain 4
pool release 1
fault 2
clear
"""


def same(a, b):
    done = subprocess.run([_program.find(), "trace", "diff", a, b], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_simulate_returns_the_memory_after_each_event():
    curve = vramyard.simulate([("alloc", 1, 1000), ("alloc", 2, 30 << 20), ("free", 2), ("free", 1)])
    assert list(curve.requested) == [1000, 1000 + (30 << 20), 1000, 0]
    assert list(curve.allocated) == [1024, 1024 + (30 << 20), 1024, 0]
    assert list(curve.reserved) == [2 << 20] + [32 << 20] * 3
    assert (len(curve), curve.peak_reserved, curve.peak_allocated, curve.first_oom) == (4, 32 << 20, 1024 + (30 << 20), None)
    assert repr(curve) == "<vramyard.Curve: 4 events, 32.00 MiB reserved at the peak>"


def test_simulate_follows_settings_cards_and_releases():
    events = [("alloc", 1, 30 << 20), ("free", 1), ("alloc", 2, 40 << 20)]
    assert vramyard.simulate(events).peak_reserved == 70 << 20
    assert vramyard.simulate(events, "expandable_segments:True").peak_reserved == 40 << 20
    assert vramyard.simulate(events, capacity="60MiB").peak_reserved == 40 << 20  # the cached segment is returned
    curve = vramyard.simulate(events, capacity="35MiB")
    assert (curve.first_oom, list(curve.ooms)) == (2, [0, 0, 1]) and repr(curve).endswith(", out of memory at event 2>")
    assert vramyard.simulate([]).peak_reserved == 0
    assert vramyard.simulate(events, release="2.6").peak_reserved == 70 << 20
    with pytest.raises(vramyard.Error, match='rules "1.0"'):
        vramyard.simulate(events, release="1.0")
    with pytest.raises(vramyard.Error, match="expandable"):
        vramyard.simulate(events, "expandable:True")


def test_simulate_agrees_with_a_replay():
    whole = vramyard.replay(TRACE).json
    curve = vramyard.simulate(TRACE)
    assert (len(curve), curve.peak_reserved, curve.peak_allocated) == (
        whole["events"], whole["peak_reserved_bytes"], whole["peak_allocated_bytes"])
    stride = whole["series"]["events_per_point"]
    for i, point in enumerate(whole["series"]["points"]):
        assert max(curve.reserved[i * stride:(i + 1) * stride]) == point["reserved_bytes"]


def test_events_have_many_forms():
    numpy, pandas, polars, pyarrow = map(pytest.importorskip, ("numpy", "pandas", "polars", "pyarrow"))
    rng, live, events = random.Random(1), [], []
    for i in range(500):
        if live and rng.random() < 0.45:
            events.append(("free", live.pop(rng.randrange(len(live)))))
        else:
            live.append(i)
            events.append(("alloc", i, rng.randrange(1, 1 << 26), rng.randrange(2)))
    want = vramyard.simulate(events)
    padded = [(*event, 0, 0)[:4] for event in events]
    columns = dict(zip(("kind", "id", "size", "stream"), map(list, zip(*padded))))
    records = numpy.array(padded, dtype=[("kind", "U5"), ("id", "u8"), ("size_bytes", "u8"), ("stream", "i4")])
    for form in (columns, {n: numpy.array(c) for n, c in columns.items()}, records, pandas.DataFrame(columns), polars.DataFrame(columns),
                 pyarrow.table(columns), iter(events)):
        assert vramyard.simulate(form).reserved == want.reserved, type(form)
    assert numpy.asarray(want.reserved).max() == want.peak_reserved
    assert want.to_pandas().reserved_bytes.max() == want.to_polars()["reserved_bytes"].max() == want.peak_reserved
    assert want.to_arrow().column("reserved_bytes").to_pylist() == list(want.reserved)
    assert polars.DataFrame(want).rows() == want.to_polars().rows()


def test_traces_come_back_unchanged(tmp_path):
    for module in "pandas", "polars", "pyarrow", "duckdb":
        pytest.importorskip(module)
    import duckdb
    every = tmp_path / "every.trace"
    every.write_text(EVERY_KIND)
    for source in str(every), "meta_llama7b_lora":
        trace = vramyard.read_trace(source)
        for form in trace.to_pandas(), trace.to_polars(), trace.to_arrow():
            vramyard.write_trace(form, tmp_path / "again.trace", header=trace.header)
            same(source, tmp_path / "again.trace")
        trace.to_parquet(tmp_path / "again.parquet")
        same(source, tmp_path / "again.parquet")
        assert duckdb.sql("select count(*) from trace").fetchall() == [(len(trace),)]
    assert trace.info["name"] == "meta_llama7b_lora" and f"{len(trace):,} events" in repr(trace) and "alloc" in trace._repr_html_()
    assert vramyard.compare(trace, "bfc").table[0]["trace"] == "meta_llama7b_lora"


def test_a_part_of_a_file_takes_the_place_of_a_path(tmp_path):
    def entry(action, size, time):
        return {"action": action, "addr": 1 << 40, "size": size, "stream": 0, "time_us": time, "frames": []}

    histories = [[entry("segment_alloc", 2 << 20, 1), entry("alloc", size, 2), entry("free_requested", size, 3), entry("free_completed", size, 4)]
                 for size in (512, 1024)]
    path = tmp_path / "two.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": histories}))
    with pytest.raises(vramyard.Error, match="--part"):
        vramyard.read_trace(path)
    trace = vramyard.read_trace(path, part="cuda:1", more=["--memory=2GiB"])
    assert vramyard.simulate(trace).peak_allocated == vramyard.simulate(trace.to_arrow()).peak_allocated == 1024


def test_tuples_are_written_as_text(tmp_path):
    path = tmp_path / "x.trace"
    vramyard.write_trace(EVENTS, path, header={"framework": "PyTorch"})
    assert path.read_text().splitlines() == [
        "# vramyard-trace 1", "# name=x", "# framework=PyTorch", "a 1 1000", "a 2 5242880 stream=7", "use 2 3", 'mark "step \\"1\\""', "f 1", "trim", "f 2"]


@pytest.mark.parametrize("events, text", [
    ([("alloc", 1, 10), ("free", 2)], "event 1: id 2 was never allocated"),
    ([("alloc", 1, 10), ("alloc", 2, -1)], 'event 1: size "-1": want bytes'),
    ([("alloc", 1)], r"event 0: \('alloc', 1\): want \('alloc', id, size_bytes\)"),
    ([("free", 1), 7], "event 1: 7: want a tuple, such as"),
    ([("malloc", 1, 2)], "event 0: kind 'malloc': want one of alloc, free, "),
    ({"kind": ["print"], "arg": [1]}, "event 0: kind 'print': want one of alloc, free, "),
    ({"id": [1]}, "the columns id lack kind, such as alloc or free"),
    ({"kind": ["free"], "name": [1]}, "column 'name': want one of kind, id, "),
    ({"kind": ["free"], "id": []}, "the columns differ in length"),
    ({"kind": ["alloc"], "size": [1], "size_bytes": [2]}, "columns size and size_bytes: want one of them"),
    ([("alloc", 1, 10), ("free", "1\nf 1")], r"event 1: 'f 1\\nf 1': want values without a line break"),
    (5, "events 5: want a list of tuples, columns or a table"),
])
def test_wrong_events_name_their_number(events, text, tmp_path):
    with pytest.raises(vramyard.Error, match="^" + text):
        vramyard.simulate(events)
    with pytest.raises(vramyard.Error, match="^" + text):
        vramyard.write_trace(events, tmp_path / "x.trace", header={"framework": "PyTorch"})


def test_wrong_headers_are_refused(tmp_path):
    path = tmp_path / "x.trace"
    with pytest.raises(vramyard.Error, match="^header 'name': want text without a line break"):
        vramyard.write_trace(EVENTS, path, header={"name": "x\nf 1"})
    vramyard.write_trace(EVENTS, path)
    with pytest.raises(vramyard.Error, match="^header: the events of a file keep the header of the file"):
        vramyard.write_trace(path, tmp_path / "y.trace", header={"name": "y"})
    assert not (tmp_path / "y.trace").exists()


def test_every_kind_has_a_line():
    assert set(_events._DEFAULTS) == {"kind", "id", "size_bytes", "stream", "align_bytes", "hint", "arg", "time_ns", "tag", "site", "thread",
                                      "life"}
    assert _events.to_text([]) == "\n" and _events.to_text({"kind": ["free"], "id": [3]}) == "f 3\n"
