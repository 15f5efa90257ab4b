package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBesideAnotherViewer races against stand-ins for PyTorch's viewer: one that draws, with what
// it imports from the network led to a file, and one that stops at an error.
func TestBesideAnotherViewer(t *testing.T) {
	dir := t.TempDir()
	snapshot := filepath.Join(dir, "s.pickle")
	out, err := exec.Command(shared.program, "replay", "--strategy", "caching", "--snapshot", snapshot,
		traceFile(t, "s.trace", small)).CombinedOutput()
	require.NoError(t, err, string(out))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	write("d3.min.js", `globalThis.d3 = {select: (what) => document.querySelector(what), axisLeft: () => "<polygon/>"};`)
	const draws = `import * as d3 from "https://cdn.invalid/d3";
import {axisLeft} from "https://cdn.invalid/axis";
d3.select("body").innerHTML = '<input type="file">';
d3.select("input").addEventListener("change", (e) => e.target.files[0].text().then((text) => {
	BREAK
	document.body.innerHTML += "<svg>" + axisLeft() + "</svg>";
}));`
	race := func(breaks string) []string {
		write("MemoryViz.js", strings.Replace(draws, "BREAK", breaks, 1))
		var table, progress strings.Builder
		b := beside{viz: dir, program: shared.program, dir: t.TempDir(), shots: filepath.Join(dir, "shots"),
			strategy: "caching", rounds: 1, limit: time.Minute}
		require.NoError(t, b.race(t.Context(), &table, &progress, []string{snapshot}))
		rows := strings.Split(strings.TrimSpace(table.String()), "\n")
		require.Len(t, rows, 3, table.String())
		cells := strings.Split(rows[2], "|")
		require.Len(t, cells, 13)
		return cells
	}
	const twoTimes = `^ [\d.]+, [\d.]+ $`
	cells := race(`if (!text.includes("device_traces")) throw new Error("no snapshot");`)
	for _, i := range []int{3, 4, 8, 10} {
		require.Regexp(t, twoTimes, cells[i], "%q", cells)
	}
	for _, name := range []string{"s-viewer.png", "s-page.png", "s-view.png"} {
		require.FileExists(t, filepath.Join(dir, "shots", name))
	}
	cells = race(`throw new RangeError("too much");`)
	require.Equal(t, " none: RangeError: too much ", cells[4])
	require.Regexp(t, twoTimes, cells[8], "ours is measured all the same")
}
