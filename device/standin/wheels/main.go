package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vramyard/vramyard/device/standin"
)

func main() {
	var work func(argument string) error
	if len(os.Args) > 3 {
		folder := os.Args[2]
		switch os.Args[1] {
		case "record":
			work = func(version string) error { return record(folder, version) }
		case "build":
			work = func(file string) error { return build(folder, file) }
		}
	}
	if work == nil {
		fmt.Fprintln(os.Stderr, "usage: wheels record FOLDER VERSION..., or wheels build FOLDER FACTS...")
		os.Exit(2)
	}
	for _, argument := range os.Args[3:] {
		if err := work(argument); err != nil {
			fmt.Fprintf(os.Stderr, "wheels: %s: %v\n", argument, err)
			os.Exit(1)
		}
	}
}

// build adds the stand-ins for one release to a folder.
func build(folder, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var facts standin.Facts
	if err := json.Unmarshal(text, &facts); err != nil {
		return err
	}
	return facts.Prebuild(folder)
}

// record writes the facts of one release.
func record(folder, version string) (err error) {
	dir, err := os.MkdirTemp("", "vramyard-wheel-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	wheel, err := download(dir, version)
	if err != nil {
		return err
	}
	site := filepath.Join(dir, "site-packages")
	if err := unpack(wheel, site); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(wheel), err)
	}
	facts, err := standin.Scan(site)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(facts, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "torch-"+version+".json"), append(text, '\n'), 0o644)
}

// download stores the wheel of a release in dir and returns its path.
func download(dir, version string) (string, error) {
	args := []string{"-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--only-binary=:all:",
		"--dest", dir, "--python-version=3.11", "--implementation=cp", "--abi=cp311"}
	for _, platform := range []string{"manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64"} {
		args = append(args, "--platform="+platform)
	}
	pip := exec.Command("python3", append(args, "torch=="+version)...)
	pip.Stderr = os.Stderr
	if err := pip.Run(); err != nil {
		return "", fmt.Errorf("pip download: %w", err)
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "torch-*.whl"))
	if err != nil {
		return "", err
	}
	if len(wheels) != 1 {
		return "", fmt.Errorf("pip downloaded %d wheels of torch: expected one", len(wheels))
	}
	return wheels[0], nil
}

// unpack extracts the files that Scan reads, and deletes the wheel.
func unpack(wheel, site string) error {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, f := range r.File {
		wanted := f.Name == "torch/version.py" || strings.HasSuffix(f.Name, ".dist-info/METADATA") ||
			strings.HasSuffix(f.Name, ".so") || strings.Contains(f.Name, ".so.")
		if !wanted {
			continue
		}
		if err := extract(f, filepath.Join(site, filepath.FromSlash(f.Name))); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return os.Remove(wheel)
}

// extract writes one file of an archive.
func extract(f *zip.File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
