"""Tests of vramyard.reads: python3 -m unittest tests.reads_test, in the folder above."""

import functools
import importlib.util
import os
import sys
import tempfile
import types
import unittest

from vramyard.reads import Program


class Lines(unittest.TestCase):
    def load(self, folder, name, text):
        """Writes a module below folder and returns it."""
        path = os.path.join(folder, *name.split(".")) + ".py"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_innermost_line(self):
        """Frames of PyTorch, of Python and of helpers are left out."""
        with tempfile.TemporaryDirectory() as folder:
            call = "def call(f):\n    return f()\n"
            torch = self.load(folder, "torch.__init__", call)
            inside, helper = self.load(folder, "torch.nn.layer", call), self.load(folder, "helper", call)
            program = Program(torch, helper.__file__)
            mine = self.load(folder, "models.net", "def call(f):\n    return f()\n")
            sys.path.insert(0, folder)
            try:
                def line():
                    return program.line(program.innermost(sys._getframe(1)))

                for others in (torch, inside, helper):
                    self.assertEqual(os.path.join("models", "net.py") + ":2", mine.call(functools.partial(others.call, line)))
            finally:
                sys.path.remove(folder)

    def test_names(self):
        """Generated code is left out; a program without a file has a line."""
        program = Program(types.SimpleNamespace(__file__="torch/__init__.py"))
        frame = eval(compile("__import__('sys')._getframe()", "<string>", "eval"))
        self.assertEqual("<string>:1", program.line(program.innermost(frame)))
        self.assertIsNone(program._name("<eval_with_key>.0"))
        self.assertIsNone(program._name(os.__file__))
        self.assertIsNotNone(program._name(os.path.join(os.path.dirname(os.__file__), "site-packages", "net", "net.py")))
        self.assertEqual("?", program.line(None))


if __name__ == "__main__":
    unittest.main()
