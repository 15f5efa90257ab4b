package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/vramyard/vramyard/python"
)

// Allocator is a strategy that PyTorch allocates through.
type Allocator struct {
	Strategy string // name and preset; "" for PyTorch's own allocator
	Config   string // fields of its configuration, a JSON object; "" for none
}

// libraryName is the file of the strategies as a pluggable allocator, docs/pytorch.md.
const libraryName = "libvramyard.so"

// install writes PyTorch's connection to the library of the strategies, and returns the variables
// by which a program uses both.
func (a Allocator) install(dir string) ([]string, error) {
	library, err := findLibrary()
	if err != nil {
		return nil, fmt.Errorf("strategy %s in PyTorch: %w", a.Strategy, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vramyard_torch.py"), []byte(python.Torch), 0o644); err != nil {
		return nil, err
	}
	return []string{
		"VRAMYARD_ALLOCATOR=" + library, "VRAMYARD_STRATEGY=" + a.Strategy, "VRAMYARD_CONFIG=" + a.Config,
		"VRAMYARD_DEVICE=cuda", "VRAMYARD_TRACE=" + filepath.Join(dir, "%p"+traceEnding),
	}, nil
}

// findLibrary returns the file of the library. In a checkout of the repository it is built if it is
// missing.
func findLibrary() (string, error) {
	if path := os.Getenv("VRAMYARD_LIBRARY"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("VRAMYARD_LIBRARY: %w", err)
		}
		return filepath.Abs(path)
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(program), libraryName)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	for _, from := range []string{filepath.Dir(program), here} {
		if root := checkout(from); root != "" {
			return build(root)
		}
	}
	return "", fmt.Errorf("there is no %s: want its path in VRAMYARD_LIBRARY, the file beside %s, or a checkout of the "+
		"repository with Go and a C++ compiler, which build it (docs/pytorch.md)", libraryName, program)
}

// checkout returns the closest directory above a path that has the source of the library, "" for
// none.
func checkout(path string) string {
	for {
		if _, err := os.Stat(filepath.Join(path, "cmd", "libvramyard", "shim.cc")); err == nil {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			return ""
		}
		path = up
	}
}

// build returns the library of a checkout, built if it is missing.
func build(root string) (string, error) {
	path := filepath.Join(root, "python", "vramyard", "bin", libraryName)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", path, "./cmd/libvramyard")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	text, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s does not exist, and Go, which builds it, is not installed: want a path in "+
			"VRAMYARD_LIBRARY, or the file beside the program (docs/pytorch.md)", path)
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be built: %w: %s", path, err, text)
	}
	return path, nil
}
