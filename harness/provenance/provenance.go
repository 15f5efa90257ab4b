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
	// Commit of the source; "" if the program was built outside of git, or by "go run".
	Commit string `json:"commit"`
	// Modified reports whether the source differed from the commit.
	Modified bool `json:"modified" flat:"-"`
	// Program is the module and the version of a main program other than ours, which may bring
	// strategies of its own; the commit is that program's.
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
	if info.Main.Path != "" && info.Main.Path != module {
		b.Program = info.Main.Path + " " + info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "-tags":
			b.Tags = strings.Split(s.Value, ",")
		}
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
		text += ", in " + strings.TrimSpace(b.Program)
	}
	text += fmt.Sprintf(", %s, %s", b.Go, b.Platform)
	if len(b.Tags) > 0 {
		text += ", tags " + strings.Join(b.Tags, " ")
	}
	return text
}
