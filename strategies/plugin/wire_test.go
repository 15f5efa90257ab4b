//go:build linux

package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/standin"
)

// TestWireLayoutsAgree compares the layout and the constants here with native/wire.h, as the
// compiler sees them.
func TestWireLayoutsAgree(t *testing.T) {
	t.Parallel()
	compiler, err := standin.Compiler()
	if err != nil {
		t.Skip("the layout is compared where there is a C++ compiler: ", err)
	}
	var w wire
	want := []struct {
		name string
		at   uintptr
	}{
		{"offsetof(wire, call_asked)", unsafe.Offsetof(w.callAsked)},
		{"offsetof(wire, call_answered)", unsafe.Offsetof(w.callAnswered)},
		{"offsetof(wire, host_sleeps)", unsafe.Offsetof(w.hostSleeps)},
		{"offsetof(wire, program_sleeps)", unsafe.Offsetof(w.programSleeps)},
		{"offsetof(wire, device_asked)", unsafe.Offsetof(w.deviceAsked)},
		{"offsetof(wire, device_answered)", unsafe.Offsetof(w.deviceAnswered)},
		{"offsetof(wire, device_sleeps)", unsafe.Offsetof(w.deviceSleeps)},
		{"offsetof(wire, gone)", unsafe.Offsetof(w.gone)},
		{"offsetof(wire, call)", unsafe.Offsetof(w.question)},
		{"offsetof(wire, arg)", unsafe.Offsetof(w.question) + unsafe.Offsetof(w.question.arg)},
		{"offsetof(wire, result)", unsafe.Offsetof(w.answer)},
		{"offsetof(wire, extra)", unsafe.Offsetof(w.answer) + unsafe.Offsetof(w.answer.extra)},
		{"offsetof(wire, verdict)", unsafe.Offsetof(w.answer) + unsafe.Offsetof(w.answer.verdict)},
		{"offsetof(wire, ns)", unsafe.Offsetof(w.answer) + unsafe.Offsetof(w.answer.ns)},
		{"offsetof(wire, device)", unsafe.Offsetof(w.device)},
		{"offsetof(wire, device_arg)", unsafe.Offsetof(w.deviceArg)},
		{"offsetof(wire, device_result)", unsafe.Offsetof(w.deviceResult)},
		{"offsetof(wire, device_verdict)", unsafe.Offsetof(w.deviceVerdict)},
		{"offsetof(wire, signal)", unsafe.Offsetof(w.signal)},
		{"offsetof(wire, fault)", unsafe.Offsetof(w.fault)},
		{"offsetof(wire, status)", unsafe.Offsetof(w.status)},
		{"offsetof(wire, text)", unsafe.Offsetof(w.text)},
		{"sizeof(wire)", unsafe.Sizeof(w)},
		{"CALL_BASE", uintptr(callBase)},
		{"VERDICT_UNLOADED", uintptr(verdictUnloaded)},
	}
	var program, expected strings.Builder
	program.WriteString("#include <cstddef>\n#include <cstdio>\n#include \"wire.h\"\nint main() {\n")
	for _, f := range want {
		fmt.Fprintf(&program, "printf(\"%s %%llu\\n\", (unsigned long long)%s);\n", f.name, f.name)
		fmt.Fprintf(&expected, "%s %d\n", f.name, f.at)
	}
	program.WriteString("}\n")
	dir := t.TempDir()
	source, out := filepath.Join(dir, "layout.cc"), filepath.Join(dir, "layout")
	require.NoError(t, os.WriteFile(source, []byte(program.String()), 0o600))
	args := []string{"-Inative", "-I../../device/standin/native", "-o", out, source}
	text, err := exec.Command(compiler[0], append(compiler[1:], args...)...).CombinedOutput()
	require.NoError(t, err, string(text))
	text, err = exec.Command(out).Output()
	require.NoError(t, err)
	require.Equal(t, expected.String(), string(text))
}

func TestMissingCompilerIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CXX", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := built()
	require.ErrorIs(t, err, standin.ErrNoCompiler)
	t.Setenv("CXX", "no-such-compiler -O3")
	_, err = built()
	require.ErrorContains(t, err, "the compiler that CXX names: ")
	require.ErrorContains(t, err, "no-such-compiler")
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho what is this >&2\nexit 1\n"), 0o700))
	t.Setenv("CXX", broken)
	_, err = built()
	require.ErrorContains(t, err, "cannot be compiled")
	require.ErrorContains(t, err, "what is this")
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "vramyard", "plugin", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is half built")
}
