package standin

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBothSidesHaveTheSameLayout compares numbers and layouts with those of the compiler.
func TestBothSidesHaveTheSameLayout(t *testing.T) {
	t.Parallel()
	compiler, err := Compiler()
	if err != nil {
		t.Skip("the layout is compared where there is a C++ compiler: ", err)
	}
	layout := reflect.TypeFor[Card]()
	at := func(field string) int {
		f, ok := layout.FieldByName(field)
		require.True(t, ok)
		return int(f.Offset)
	}
	want := []struct {
		name string
		at   int
	}{
		{"DEVICE_RESERVE", int(opReserve)},
		{"DEVICE_UNMAP", int(opUnmap)},
		{"DEVICE_EXPORT_TABLE", int(opExportTable)},
		{"MARK_OUT_OF_MEMORY", int(OutOfMemory)},
		{"MARK_RAISED", int(Raised)},
		{"MARK_WAITED", int(Waited)},
		{"MARK_GUESSED + GUESSED_CONVOLUTION", int(GuessedConvolutions)},
		{"MARK_GUESSED + GUESSED_OTHER", int(GuessedOther)},
		{"ANSWER_OUT_OF_MEMORY", int(answerOutOfMemory)},
		{"ANSWER_FAILED", int(answerFailed)},
		{"offsetof(card, memory)", at("Memory")},
		{"offsetof(card, processors)", at("Processors")},
		{"offsetof(card, memory_clock)", at("MemoryClock")},
		{"sizeof(card)", int(layout.Size())},
		{"sizeof(card)", binary.Size(Card{})}, // as it is sent, without padding
	}
	var program, expected strings.Builder
	program.WriteString("#include <cstddef>\n#include <cstdio>\n#include \"standin.h\"\nint main() {\n")
	for _, f := range want {
		fmt.Fprintf(&program, "printf(\"%s %%llu\\n\", (unsigned long long)%s);\n", f.name, f.name)
		fmt.Fprintf(&expected, "%s %d\n", f.name, f.at)
	}
	program.WriteString("}\n")
	dir := t.TempDir()
	source, out := filepath.Join(dir, "layout.cc"), filepath.Join(dir, "layout")
	require.NoError(t, os.WriteFile(source, []byte(program.String()), 0o600))
	text, err := exec.Command(compiler[0], append(compiler[1:], "-Inative", "-o", out, source)...).CombinedOutput()
	require.NoError(t, err, string(text))
	text, err = exec.Command(out).Output()
	require.NoError(t, err)
	require.Equal(t, expected.String(), string(text))
}
