package plugin

import (
	"embed"
	"fmt"

	"github.com/vramyard/vramyard/device/standin"
)

// native is the source of the host program, which is compiled on the user's machine.
//
//go:embed native/*
var native embed.FS

// The files of a build.
const (
	hostFile    = "host"     // the program
	standinsDir = "standins" // the stand-ins for CUDA's libraries
)

// recipe returns how the host program and the stand-ins are built.
func recipe() (r standin.Recipe, err error) {
	files, stages := standin.Runtimes(standinsDir + "/")
	for _, name := range []string{"host.cc", "wire.h"} {
		text, err := native.ReadFile("native/" + name)
		if err != nil {
			return r, fmt.Errorf("plugin: %w", err)
		}
		files[name] = string(text)
	}
	// The libraries call functions of the host, which therefore exports them.
	stages[0] = append(stages[0], standin.Step{"-rdynamic", "-o", hostFile, "host.cc", "-ldl", "-pthread"})
	return standin.Recipe{Folder: "plugin", Files: files, Stages: stages}, nil
}

// built returns the folder of the build, and builds first if it is not in the user's cache.
func built() (string, error) {
	r, err := recipe()
	if err != nil {
		return "", err
	}
	dir, err := r.Build()
	if err != nil {
		return "", fmt.Errorf("plugin: the host program, which is compiled at first use, cannot be built: %w", err)
	}
	return dir, nil
}
