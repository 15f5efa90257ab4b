package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build builds vramyard into a folder and returns its path. It is run from this module's folder.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "vramyard")
	out, err := exec.CommandContext(ctx, "go", "-C", "../..", "build", "-o", path, "./cmd/vramyard").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build vramyard: %w\n%s", err, out)
	}
	return path, nil
}

// report runs vramyard with these arguments and --html, and returns the path of the page. It
// ignores the exit status, because some replays are meant to run out of memory.
func report(ctx context.Context, program, dir, name string, words ...string) (string, error) {
	path := filepath.Join(dir, name+".html")
	out, err := exec.CommandContext(ctx, program, append(words, "--html", path)...).CombinedOutput()
	if _, missing := os.Stat(path); missing != nil {
		return "", fmt.Errorf("vramyard %s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return path, nil
}

// examples writes the reports that pictures are made of.
func examples(ctx context.Context, dir string) (paths []string, err error) {
	program, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, r := range []struct {
		name  string
		words []string
	}{
		{"compare", []string{"compare", "--strategies", "bfc,caching,caching:expandable,buddy", "meta_llama7b_fsdp8"}},
		{"failing", []string{"compare", "--capacity", "2GiB", "--strategies", "bfc,caching", "cpu_gpt2_train_varlen"}},
		{"bench", []string{"bench", "--pairs", "20000", "--rounds", "3", "--live", "300,1000,3000"}},
		{"many", []string{"compare", "meta_resnet50_b256", "meta_llama7b_lora"}},
	} {
		path, err := report(ctx, program, dir, r.name, r.words...)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
