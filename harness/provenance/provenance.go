// Package provenance identifies the program that made a result: its version, its commit and how it
// was built. Every result of this repository has it as the object "provenance".
package provenance

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version is the version of Vramyard.
const Version = "0.2.0"

// module is the path of this module.
const module = "github.com/vramyard/vramyard"

// Build describes the program of this process. It differs between machines, unlike the rest of a
// result. In a table of results its columns are the version and the commit.
type Build struct {
	// Version of Vramyard.
	Version string `json:"version"`
	// Commit of Vramyard's source; "" if the program was built outside of git, by "go run", or from
	// another module.
	Commit string `json:"commit"`
	// Modified reports whether the source differed from the commit.
	Modified bool `json:"modified" flat:"-"`
	// Program is the module of a main program other than ours, which may bring strategies of its own,
	// with its version and commit.
	Program string `json:"program,omitempty" flat:"-"`
	// Go is the version of Go.
	Go string `json:"go" flat:"-"`
	// Platform is the system and the architecture, as in "linux/amd64".
	Platform string `json:"platform" flat:"-"`
	// Tags are the build tags.
	Tags []string `json:"tags" flat:"-"`
}

// Read returns the build of this process.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return of(info)
}

func of(info *debug.BuildInfo) Build {
	b := Build{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Tags: []string{}}
	commit, modified := "", false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		case "-tags":
			b.Tags = strings.Split(s.Value, ",")
		}
	}
	if info.Main.Path == "" || info.Main.Path == module {
		b.Commit, b.Modified = commit, modified
		return b
	}
	b.Program = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	if commit != "" {
		b.Program += ", commit " + commit
	}
	if modified {
		b.Program += " (modified)"
	}
	return b
}

// String returns the build in a line, as in "0.2.0, commit 1234abc, go1.26, linux/amd64".
func (b Build) String() string {
	text := b.Version
	if b.Commit != "" {
		text += ", commit " + b.Commit
	}
	if b.Modified {
		text += " (modified)"
	}
	if b.Program != "" {
		text += ", in " + b.Program
	}
	text += fmt.Sprintf(", %s, %s", b.Go, b.Platform)
	if len(b.Tags) > 0 {
		text += ", tags " + strings.Join(b.Tags, " ")
	}
	return text
}
