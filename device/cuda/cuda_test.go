package cuda_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
)

// TestNoDriver asks for drivers that there are not.
func TestNoDriver(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nowhere/libcuda.so.1", text} {
		_, err := cuda.Open(cuda.Config{Driver: path})
		if !errors.Is(err, cuda.ErrNoDriver) || !strings.Contains(err.Error(), path) {
			t.Errorf("opening with the driver %s: %v, want ErrNoDriver and the path", path, err)
		}
		if _, err := cuda.List(path); !errors.Is(err, cuda.ErrNoDriver) {
			t.Errorf("listing the GPUs of the driver %s: %v, want ErrNoDriver", path, err)
		}
	}
}

// TestAStaticProgramIsPossible looks for what links to the C library among what the command imports
// with the tag nocuda.
func TestAStaticProgramIsPossible(t *testing.T) {
	for tags, want := range map[string]bool{"": true, "nocuda": false} {
		c := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tags, "../../cmd/vramyard")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		text, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "github.com/ebitengine/purego"); got != want {
			t.Errorf("tags %q: links to the C library: %v, want %v", tags, got, want)
		}
	}
}

// TestParseDevice reads what the command line names.
func TestParseDevice(t *testing.T) {
	for text, want := range map[string]cuda.Config{
		"cuda": {}, "cuda:0": {}, "cuda:3": {Ordinal: 3}, "cuda:0:24GiB": {Limit: 24 * device.GiB},
		"cuda:255:1B": {Ordinal: 255, Limit: 1},
	} {
		got, err := cuda.ParseDevice(text)
		if err != nil || got != want || !cuda.IsDevice(text) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := cuda.ParseDevice(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q and read back as %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "cud", "cuda:", "cuda:-1", "cuda:256", "cuda:x", "cuda:0:", "cuda:0:0", "cuda:0:-1",
		"cuda:0:1:2", "cuda0", "sim"} {
		if c, err := cuda.ParseDevice(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %+v, %v, want an error that names it", text, c, err)
		}
	}
}
