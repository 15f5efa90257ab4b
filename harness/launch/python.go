package launch

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNoPython says which programs can be run.
var errNoPython = errors.New("want a Python interpreter, or a script whose first line names one")

// interpreter returns the Python interpreter that runs a command.
func interpreter(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(filepath.Base(path), "python") {
		return path, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()                                // only read from
	line, _ := bufio.NewReader(f).ReadString('\n') // a file without a line names no interpreter
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	for _, w := range words {
		if strings.HasPrefix(line, "#!") && strings.HasPrefix(filepath.Base(w), "python") {
			return exec.LookPath(w)
		}
	}
	return "", fmt.Errorf("%s: %w", program, errNoPython)
}

// find prints the directory that has torch, without importing it.
const find = `import importlib.util as u, os
s = u.find_spec("torch")
print(os.path.dirname(os.path.dirname(s.origin)) if s and s.origin else "")`

// sitePackages returns the directory in which an interpreter finds PyTorch.
func sitePackages(python string) (string, error) {
	out, err := exec.Command(python, "-c", find).Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok && len(e.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(e.Stderr)))
		}
		return "", fmt.Errorf("%s: %w", python, err)
	}
	site := strings.TrimSpace(string(out))
	if site == "" {
		return "", fmt.Errorf(
			"%s has no PyTorch: install a CUDA build of it, such as \"pip install --no-deps torch\" with "+
				"typing-extensions, sympy, networkx, jinja2, fsspec, filelock and numpy",
			python,
		)
	}
	return site, nil
}
