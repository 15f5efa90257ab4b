"""Tests of whatif, compare, replay and top: pytest python/tests/study_test.py, with the path of the program in VRAMYARD."""

import ast
import os
import pathlib
import pickle
import re
import subprocess
import sys
import warnings

import pytest

import vramyard
from vramyard import _call

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAT = ROOT / "examples" / "oom" / "chat.pickle.gz"
TRACE = "cpu_unet_train"


@pytest.fixture(scope="module")
def answer():
    return vramyard.whatif(CHAT)


def test_an_answer_names_the_setting_and_what_it_saves(answer):
    assert answer.verdict == "Yes: PYTORCH_ALLOC_CONF=expandable_segments:True completes this run on the same card (16.00 GiB)."
    assert (answer.kind, answer.setting) == ("setting", "caching expandable_segments:True")
    assert answer.environment == {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    assert answer.environment_before == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert answer.saved_bytes == answer.json["recorded"]["peak_reserved_bytes"] - answer.need_bytes > 1 << 30
    assert repr(answer) == f"<vramyard.Answer: {answer.verdict}>"
    assert str(answer).startswith(answer.verdict) and "How sure:" in str(answer)
    best = next(row for row in answer.table if row["label"] == answer.setting)
    assert best["min_capacity_bytes"] == answer.need_bytes and best["config"]["conf"] == "expandable_segments:True"


def test_tables_are_the_same_in_every_form(answer):
    duckdb, pandas, polars = map(pytest.importorskip, ("duckdb", "pandas", "polars"))
    for table in answer.table, vramyard.compare([TRACE, "cpu_resnet50_train"], "bfc,tlsf").table, vramyard.replay(TRACE, "tlsf").table:
        want = table.to_arrow().to_pylist()
        assert len(table) == len(want) > 0 and table.columns == list(want[0])
        for row, stored in zip(table, want):
            for name, value in stored.items():
                if not isinstance(row[name], (dict, list)):  # which the file holds as JSON
                    assert row[name] == value or not row[name] and not value, name
        assert table.to_pandas().equals(table.to_arrow().to_pandas())
        assert table.to_polars().rows() == polars.DataFrame(table).rows()
        runs = table  # by this name DuckDB finds it
        assert duckdb.sql("select max(peak_reserved_bytes) from runs").fetchall() == [(max(r["peak_reserved_bytes"] for r in runs),)]
    assert pandas.api.types.is_unsigned_integer_dtype(answer.table.to_pandas().min_capacity_bytes)


def test_tables_of_a_sweep_have_the_columns_of_its_page(tmp_path, monkeypatch):
    duckdb, pandas, polars = map(pytest.importorskip, ("duckdb", "pandas", "polars"))
    monkeypatch.chdir(tmp_path)
    pathlib.Path("study.yaml").write_text(f"traces: [{TRACE}]\nstrategies: [bfc, async]\n")
    _call.call(["sweep", "plan", "study.yaml", "-o", "plan.parquet"])
    _call.call(["sweep", "run", "plan.parquet", "--store", "cells"])
    _call.call(["sweep", "merge", "plan.parquet", "--store", "cells", "-o", "results.parquet", "--times", "times.parquet"])
    page = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
    for kind, name in ("Times", "times.parquet"), ("Plans", "plan.parquet"):
        words = re.search(rf"\*\*{kind}\*\* \(`[^`]*`\): ([^:]*)\.$", page, re.MULTILINE).group(1)
        named = re.findall(r"`(\w+)`", words)
        assert polars.read_parquet(name).columns == named == list(pandas.read_parquet(name).columns) == duckdb.sql(f"FROM '{name}'").columns
    table, frame, rows = polars.read_parquet("results.parquet"), pandas.read_parquet("results.parquet"), duckdb.sql("FROM 'results.parquet'")
    assert table.rows() == rows.fetchall() and table.height == len(frame) == 2
    texts = {n for names in re.findall(r"^\| (`.*`) \| string \|", page, re.MULTILINE) for n in re.findall(r"`(\w+)`", names)}
    assert len(texts) >= 6
    for name, kind in zip(rows.columns, rows.types):
        if name in texts:
            assert table[name].dtype == polars.String and pandas.api.types.is_string_dtype(frame[name]) and kind == "VARCHAR"
        elif name.endswith("_bytes"):
            assert table[name].dtype == polars.UInt64 and pandas.api.types.is_numeric_dtype(frame[name]) and kind == "UBIGINT"
    query = re.search(r"```sql\n(.*?)```", page, re.DOTALL).group(1)
    assert sorted(name for name, ratio in duckdb.sql(query).fetchall() if 1 <= ratio < 2) == ["async", "bfc"]


def test_one_library_is_enough(answer, monkeypatch, tmp_path):
    pandas, polars, parquet = map(pytest.importorskip, ("pandas", "polars", "pyarrow.parquet"))
    answer.table.to_parquet(tmp_path / "table.parquet")
    vramyard.top(CHAT).table.to_parquet(tmp_path / "top.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").equals(answer.table.to_arrow())
    assert parquet.read_table(tmp_path / "top.parquet").num_rows == 5
    for module in "pyarrow", "pyarrow.parquet":
        monkeypatch.setitem(sys.modules, module, None)
    assert list(answer.table.to_pandas().label) == [row["label"] for row in answer.table]
    assert polars.DataFrame(answer.table).rows() == answer.table.to_polars().rows()


def test_notebooks_show_results_as_html(answer):
    page = answer._repr_html_()
    assert "<b>Yes: PYTORCH_ALLOC_CONF" in page and "export PYTORCH_ALLOC_CONF=" in page and "<td>14.48 GiB</td>" in page
    assert "<polyline" in vramyard.replay(TRACE)._repr_html_()
    assert vramyard.Table([{"name": "<b>", "bytes": None}], ["name", "bytes"])._repr_html_().count("&lt;b&gt;") == 1
    long = vramyard.Table([{"event": i} for i in range(1000)], ["event"])
    assert repr(long).endswith("\n59\n940 more rows") and long._repr_html_().endswith("</table>940 more rows")


def test_a_file_that_cannot_answer_says_what_would(tmp_path):
    block = {"address": 1 << 40, "size": 2 << 20, "requested_size": 2 << 20, "state": "active_allocated", "frames": []}
    segment = {"address": 1 << 40, "device": 0, "total_size": 2 << 20, "stream": 0, "segment_type": "large", "allocated_size": 2 << 20,
               "active_size": 2 << 20, "blocks": [block]}
    (tmp_path / "state.pickle").write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}))
    answer = vramyard.whatif(tmp_path / "state.pickle")
    assert (answer.kind, answer.setting, answer.environment, answer.saved_bytes) == ("cannot-tell", None, {}, None)
    assert len(answer.table) == 0 and "_record_memory_history" in answer._repr_html_() and repr(answer.table) == ""


def test_a_comparison_has_a_row_for_each_strategy_and_trace():
    result = vramyard.compare([TRACE, "cpu_resnet50_train"], ["bfc", 'caching{"conf":"max_split_size_mb:128"}'])
    assert [(r["trace"], r["strategy"]) for r in result.table] == [
        (t, s) for t in (TRACE, "cpu_resnet50_train") for s in ("bfc", 'caching{"conf":"max_split_size_mb:128"}')]
    assert "min capacity" in repr(result.table) and result.verdict in repr(result)
    assert vramyard.compare(pathlib.Path(TRACE), "bfc").table[0]["strategy"] == "bfc"


def test_a_replay_has_the_memory_over_the_run():
    result = vramyard.replay(TRACE, config={"conf": "expandable_segments:True"}, device="sim:24GiB")
    assert result.json["config"]["conf"] == "expandable_segments:True"
    assert max(p["reserved_bytes"] for p in result.series) == result.table[0]["peak_reserved_bytes"]
    assert vramyard.replay(TRACE, more=["--stop-at-oom", "--sim", '{"capacity":"512MiB"}']).json["stopped"] is True


def test_top_lists_owners():
    result = vramyard.top(CHAT)
    assert result.table[0]["name"] == "chat:0 torch.cat" and result.failure[0]["name"] == "chat:0 torch.cat"
    assert sum(r["bytes"] for r in result.categories) == result.json["peak"]["live_bytes"]
    assert vramyard.top(TRACE).failure is None


def test_reports_are_written(tmp_path):
    vramyard.replay(TRACE, html=tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_failures_are_one_exception(tmp_path, monkeypatch):
    with pytest.raises(vramyard.Error, match="none.pickle: no such file or directory") as caught:
        vramyard.whatif("none.pickle")
    assert caught.value.status == 2
    with pytest.raises(vramyard.Error, match="unknown flag: --nothing"):
        vramyard.top(CHAT, more=["--nothing"])
    (tmp_path / "-x.trace").write_text("a 1 512\nf 7\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(vramyard.Error, match="^-x.trace:2: id 7 was never allocated$"):
        vramyard.compare("-x.trace")
    with pytest.raises(vramyard.Error, match="^traces: want at least one file"):
        vramyard.compare([])
    monkeypatch.setenv("VRAMYARD", str(tmp_path / "-x.trace"))
    with pytest.raises(vramyard.Error, match="-x.trace: "):
        vramyard.top(CHAT)
    monkeypatch.setenv("VRAMYARD", str(tmp_path / "missing"))
    with pytest.raises(vramyard.Error, match="want the path of the program vramyard"):
        vramyard.top(CHAT)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for the program is a script")
def test_warnings_of_the_program_are_warnings(tmp_path, monkeypatch):
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\necho 'run.pickle: 3 lines were lost' >&2\n")
    script.chmod(0o755)
    monkeypatch.setenv("VRAMYARD", str(script))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert _call.call(["anything"]) == ""
    assert [(str(w.message), w.filename) for w in caught] == [("run.pickle: 3 lines were lost", __file__)]


def test_modules_have_the_syntax_of_the_oldest_python():
    for module in (ROOT / "python" / "vramyard").glob("*.py"):
        ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 9))


def test_nothing_else_needs_to_be_installed():
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import vramyard
assert "torch" not in sys.modules and vramyard.__all__ and "dtrlog" in dir(vramyard)
answer = vramyard.whatif(sys.argv[2])
assert len(answer.table) > 20 and answer._repr_html_()
curve = vramyard.simulate([("alloc", 1, 1000)])
assert curve.peak_reserved == 2 << 20 and curve._repr_html_()
for library, convert in [("pandas", curve.to_pandas), ("polars", answer.table.to_polars), ("pyarrow", answer.table.to_arrow),
                         ("torch", lambda: vramyard.on_oom("run.pickle"))]:
    try:
        convert()
    except vramyard.Error as err:
        assert str(err) == f"this needs {library}: pip install {library}", err
    else:
        raise AssertionError(library)
try:
    vramyard.nothing
except AttributeError:
    print("ok")
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, str(ROOT / "python"), str(CHAT)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
