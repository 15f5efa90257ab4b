package corpus

import (
	_ "embed" // of the manifest
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

//go:embed manifest.json
var manifestFile []byte

// Schema names the form of a [Manifest] in JSON.
const Schema = "vramyard-corpus/1"

// Manifest lists the traces of a version of the corpus.
type Manifest struct {
	Schema  string  `json:"schema"`  // the constant Schema
	Version int     `json:"version"` // raised by every change of the traces
	Traces  []Entry `json:"traces"`  // recorded ones first
}

// Entry is the card of a trace. Unknown facts are stated as unknown.
type Entry struct {
	Name        string      `json:"name"`                   // as commands accept it
	Hash        string      `json:"sha256"`                 // SHA-256 of the decompressed trace, in hexadecimal
	Bytes       device.Size `json:"bytes"`                  // length of the decompressed trace
	Object      string      `json:"object,omitempty"`       // file in the archive; "" if the trace is inside the program
	ObjectBytes device.Size `json:"object_bytes,omitempty"` // its length
	Program     string      `json:"program"`                // the recorded program
	Source      string      `json:"source,omitempty"`       // address of the public report that the trace follows
	Versions    string      `json:"versions"`               // of the framework
	Device      string      `json:"device"`                 // on which the program ran
	Recorded    string      `json:"recorded"`               // method
	Clock       string      `json:"clock"`                  // meaning of the times
	License     string      `json:"license"`                // of the trace
	Stats       Stats       `json:"statistics"`             // of its events
}

// Read returns the manifest of the program. The caller owns it.
func Read() *Manifest {
	m := new(Manifest)
	if err := json.Unmarshal(manifestFile, m); err != nil {
		panic("corpus: manifest: " + err.Error()) // part of the program; a test reads it
	}
	return m
}

// Lookup returns the trace with a name.
func Lookup(name string) (Entry, bool) {
	all := Read().Traces
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Names returns the names of all traces, in the order of the manifest. The caller owns the list.
func Names() []string {
	var names []string
	for _, e := range Read().Traces {
		names = append(names, e.Name)
	}
	return names
}

// Dir returns the default folder of fetched traces, in the cache of the user.
func Dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for caches: %w", err)
	}
	return filepath.Join(cache, "vramyard", "corpus"), nil
}

// Release returns the address of the project's archive of this version.
func Release() string {
	return fmt.Sprintf("https://github.com/vramyard/vramyard/releases/download/corpus-%d", Read().Version)
}

// Inside reports whether the trace is part of the program.
func (e *Entry) Inside() bool { return slices.Contains(workload.RecordingNames(), e.Name) }

// Path returns the file of a fetched trace in a folder.
func (e *Entry) Path(dir string) string { return filepath.Join(dir, e.Object) }

// Fetched reports whether a folder has the file of the trace. It does not read the file.
func (e *Entry) Fetched(dir string) bool {
	info, err := os.Stat(e.Path(dir))
	return err == nil && info.Mode().IsRegular()
}

// isAddress reports whether an archive is on a server.
func isAddress(from string) bool {
	return strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://")
}
