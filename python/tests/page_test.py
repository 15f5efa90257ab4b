"""Runs the examples of docs/python.md, which follow each other, and compares what they print with the page."""

import contextlib
import io
import pathlib
import re
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_prints_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    shutil.copy(ROOT / "examples" / "oom" / "chat.pickle.gz", tmp_path / "run.pickle")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", page, re.DOTALL)
    names = {}
    for code, want in blocks:
        compiled = compile(code, "docs/python.md", "exec")
        if not want:
            assert "train()" in code  # needs a GPU
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compiled, names)
        assert out.getvalue() == want
    assert len(blocks) >= 6
