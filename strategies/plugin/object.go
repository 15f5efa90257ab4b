package plugin

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
)

// machines maps Go's names of processors to ELF's.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm": elf.EM_ARM, "arm64": elf.EM_AARCH64, "loong64": elf.EM_LOONGARCH,
	"mips64": elf.EM_MIPS, "mips64le": elf.EM_MIPS, "ppc64": elf.EM_PPC64, "ppc64le": elf.EM_PPC64,
	"riscv64": elf.EM_RISCV,
	"s390x":   elf.EM_S390,
}

// inspect reads a shared object and returns its SHA-256 and the libraries it needs. It fails if the
// file does not exist, is no shared object of this machine, or lacks one of the symbols that are
// not empty. It is checked here because the errors of the system's loader are less clear.
func inspect(path string, symbols []string) (hash string, libraries []string, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%s: no such file", path)
	}
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s: want a regular file", path)
	}
	object, err := elf.NewFile(f)
	if err != nil || object.Type != elf.ET_DYN {
		return "", nil, fmt.Errorf("%s: want a shared object", path)
	}
	if want, ok := machines[runtime.GOARCH]; ok && object.Machine != want {
		return "", nil, fmt.Errorf("%s: built for %v, this program runs on %v", path, object.Machine, want)
	}
	if err := hasSymbols(object, symbols); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	// Hash the bytes that were inspected: the file may change before it is read again.
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return "", nil, err
	}
	libraries, err = object.ImportedLibraries()
	return hex.EncodeToString(h.Sum(nil)), libraries, err
}

// hasSymbols returns an error that names the first missing symbol and the nearest exported one.
func hasSymbols(object *elf.File, want []string) error {
	all, err := object.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fmt.Errorf("its symbols: %w", err)
	}
	var exported []string
	for _, s := range all {
		// Undefined symbols are imports.
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			exported = append(exported, s.Name)
		}
	}
	for _, name := range want {
		if name == "" || slices.Contains(exported, name) {
			continue
		}
		why := fmt.Errorf("no function %s", name)
		i := slices.IndexFunc(exported, func(s string) bool {
			return strings.HasPrefix(s, "_Z") && strings.Contains(s, name)
		})
		if i >= 0 {
			why = fmt.Errorf(`%w; %s is probably its C++ name: declare it extern "C"`, why, exported[i])
		}
		return why
	}
	return nil
}
