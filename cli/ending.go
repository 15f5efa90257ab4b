package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// endings lists the file-name endings of flags whose files have one format.
var endings = map[string][]string{
	"json":       {".json"},
	"csv":        {".csv"},
	"parquet":    {".parquet"},
	"output":     {".parquet"}, // of sweep
	"times":      {".parquet"},
	"offsets":    {".csv"},
	"curve":      {".csv", ".npy", ".parquet"},
	"html":       {".html", ".htm"},
	"memory-map": {".pb"},
	"markdown":   {".md"},
	"junit":      {".xml"},
	"sarif":      {".sarif", ".json"},
}

// formatEndings lists the endings that imply a file format.
var formatEndings = []string{
	".7z", ".arrow", ".bin", ".bz2", ".csv", ".db", ".feather", ".h5", ".hdf5", ".htm", ".html", ".json", ".jsonl", ".lz4",
	".md", ".npy",
	".npz", ".ods", ".orc", ".parq", ".parquet", ".pb", ".pdf", ".pickle", ".pkl", ".png", ".pq", ".pt", ".pth",
	".safetensors", ".sqlite", ".svg",
	".tar", ".tgz", ".trace", ".tsv", ".xls", ".xlsx", ".xml", ".xz", ".yaml", ".yml", ".zip",
}

// packed returns the endings of a file format, compressed ones included.
func packed(want []string) (all []string) {
	for _, e := range want {
		if all = append(all, e); e != ".parquet" { // its columns are compressed
			all = append(all, e+".gz", e+".zst")
		}
	}
	return all
}

// endingOf returns the ending of a name in lower case, without the suffix of a file
// compressed by [fileio.Write].
func endingOf(path string) string {
	name := strings.ToLower(path)
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
}

// checkEnding refuses a name whose ending implies another format than the wanted ones. A missing or
// unknown ending implies none.
func checkEnding(path string, want []string) error {
	e := endingOf(path)
	if slices.Contains(want, e) || !slices.Contains(formatEndings, e) {
		return nil
	}
	return fmt.Errorf("%s: want a name that ends in %s", path, strings.Join(packed(want), ", "))
}
