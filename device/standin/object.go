package standin

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Object describes how a shared object is linked.
type Object struct {
	// SoName is the name under which the loader knows the object, "" if it has none.
	SoName string
	// Needed lists the SONAMEs of the libraries that the loader loads with the object, in its order.
	Needed []string
	// RPath lists the directories that the loader searches before LD_LIBRARY_PATH.
	RPath []string
	// RunPath lists the directories that the loader searches after LD_LIBRARY_PATH.
	RunPath []string
	// Imports lists the undefined symbols, weak ones too, in the order of the symbol table.
	Imports []Import
}

// Import is a symbol that an object takes from another one.
type Import struct {
	// Name is the name of the symbol.
	Name string
	// Version is the version node that the definition must carry, "" if it may carry any.
	Version string
	// Library is the SONAME of the library that must define this version, "" without a version.
	Library string
}

// ReadObject reads an ELF file. It reads the tables of the dynamic linker, not the code.
func ReadObject(path string) (Object, error) {
	f, err := elf.Open(path)
	if err != nil {
		return Object{}, fmt.Errorf("%s: expected a shared object in ELF format: %w", path, err)
	}
	defer f.Close()
	l, err := readLinkage(f)
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", path, err)
	}
	return l.Object, nil
}

// linkage is an object with the names that it defines.
type linkage struct {
	Object
	// defined lists the symbols that other objects can import.
	defined []string
}

// readLinkage reads the dynamic section and the dynamic symbols.
func readLinkage(f *elf.File) (linkage, error) {
	var l linkage
	for _, entry := range []struct {
		tag  elf.DynTag
		list *[]string
	}{{elf.DT_NEEDED, &l.Needed}, {elf.DT_RPATH, &l.RPath}, {elf.DT_RUNPATH, &l.RunPath}} {
		values, err := f.DynString(entry.tag)
		if err != nil {
			return l, fmt.Errorf("read %v of the dynamic section: %w", entry.tag, err)
		}
		*entry.list = values
	}
	l.RPath, l.RunPath = directories(l.RPath), directories(l.RunPath)
	names, err := f.DynString(elf.DT_SONAME)
	if err != nil {
		return l, fmt.Errorf("read %v of the dynamic section: %w", elf.DT_SONAME, err)
	}
	if len(names) > 0 {
		l.SoName = names[0]
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && f.Section(".dynsym") != nil {
		return l, fmt.Errorf("read the dynamic symbols: %w", err)
	}
	for _, s := range symbols {
		bind := elf.ST_BIND(s.Info)
		switch {
		case bind != elf.STB_GLOBAL && bind != elf.STB_WEAK:
		case s.Section == elf.SHN_UNDEF:
			l.Imports = append(l.Imports, Import{Name: s.Name, Version: s.Version, Library: s.Library})
		default:
			l.defined = append(l.defined, s.Name)
		}
	}
	return l, nil
}

// directories splits search paths at their colons.
func directories(paths []string) []string {
	var dirs []string
	for _, p := range paths {
		dirs = append(dirs, strings.Split(p, ":")...)
	}
	return slices.Clip(dirs)
}
