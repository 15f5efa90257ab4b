"""Put the program into the wheel. python/build.sh sets the variables; without them the wheel has only the Python modules."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("VRAMYARD_WHEEL_BIN")
        if folder and version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = os.environ["VRAMYARD_WHEEL_TAG"]
            build_data["force_include"][folder] = "vramyard/bin"
