"""Tests of vramyard.cudnn_table: python3 -m unittest tests.cudnn_table_test, in the folder above. They need a C++ compiler, but no card:
the stand-in of cuDNN takes the place of cuDNN."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from vramyard import cudnn_table

# Has the dialogue of one convolution with cuDNN, through the library that is loaded before it.
PROGRAM = """
import ctypes
ctypes.CDLL("libcudnn.so.9")
dnn, P = ctypes.CDLL(None), ctypes.c_void_p
def make(kind):
    d = P()
    assert dnn.cudnnBackendCreateDescriptor(kind, ctypes.byref(d)) == 0
    return d
def put(d, name, kind, *values):
    array = ((P if kind == 15 else ctypes.c_int if kind == 1 else ctypes.c_int64) * len(values))(*values)
    assert dnn.cudnnBackendSetAttribute(d, name, kind, ctypes.c_int64(len(values)), array) == 0
def tensor(*shape):
    d = make(17)
    put(d, 901, 1, 2), put(d, 902, 3, *shape), put(d, 903, 3, shape[1], 1)
    return d
operation, graph, heuristics, config, plan, convolution = map(make, (10, 15, 4, 3, 5, 1))
put(convolution, 103, 3, 1, 1)
for name, value in zip(range(702, 706), (convolution, tensor(3, 3), tensor(9, 8), tensor(9, 6))):
    put(operation, name, 15, value)
put(graph, 801, 15, operation), put(heuristics, 201, 15, graph)
assert dnn.cudnnBackendGetAttribute(heuristics, 202, 15, ctypes.c_int64(1), None, (P * 1)(config)) == 0
put(plan, 401, 15, config)
assert dnn.cudnnBackendExecute(None, plan, None) == 0
"""


class Tests(unittest.TestCase):
    def test_merged_tables_keep_the_last_row(self):
        self.assertEqual(cudnn_table.merge(["# card", "b 1", "a 2"], ["c 3", "b 4", "c 5"]), ["# card", "a 2", "b 4", "c 5"])

    def test_executed_convolutions_have_a_row(self):
        with tempfile.TemporaryDirectory() as folder:
            host, table = pathlib.Path(folder, "host.cc"), pathlib.Path(folder, "table")
            host.write_text('extern "C" void vramyard_guessed(int, const void *, const void *) {}\n')
            sources = [host, *(cudnn_table.NATIVE / name for name in ("dnn.cc", "dnngraph.cc"))]
            options = ["-std=c++17", "-fPIC", "-shared", "-Wl,-soname,libcudnn.so.9", f"-I{cudnn_table.NATIVE}"]
            compiler = os.environ.get("CXX", "c++").split()
            subprocess.run([*compiler, *options, "-o", f"{folder}/libcudnn.so.9", *map(str, sources)], check=True)
            table.write_text("# card\n")
            tool = [sys.executable, "-m", "vramyard.cudnn_table", str(table), "--", sys.executable, "-c", PROGRAM]
            environment = dict(os.environ, LD_LIBRARY_PATH=folder, VRAMYARD_CUDNN="bound=4096")
            subprocess.run(tool, check=True, env=environment)
            row = "forward type=2 w=3,3:3,1 x=9,8:8,1 y=9,6:6,1 stride=1,1 4096\n"
            self.assertEqual(table.read_text(), "# card\n" + row)

            # A wheel has the library, and needs no compiler.
            table.unlink()
            built = mock.patch.object(cudnn_table, "BUILT", pathlib.Path(cudnn_table.build(folder)))
            with built, mock.patch.dict(os.environ, LD_LIBRARY_PATH=folder, VRAMYARD_CUDNN="bound=4096", CXX="/nowhere"):
                self.assertEqual(cudnn_table.main([str(table), "--", sys.executable, "-c", PROGRAM]), 0)
            self.assertEqual(table.read_text(), row)


if __name__ == "__main__":
    unittest.main()
