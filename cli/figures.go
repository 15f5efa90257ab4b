package cli

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
)

// figureFiles are the flags that name the files for the figures of a command: all of them as JSON, and as a table in CSV
// and in Parquet, which have the same columns.
type figureFiles struct{ jsonFile, csvFile, parquetFile string }

// add adds the flags to a command; instead names what a file on standard output replaces.
func (f *figureFiles) add(c *cobra.Command, instead string) {
	fl := c.Flags()
	fl.StringVar(&f.jsonFile, "json", "", `also write all figures as JSON to this file, "-" for standard output instead of `+instead)
	fl.StringVar(&f.csvFile, "csv", "", `also write the figures as a table in CSV, one row for each run, to this file, "-" for standard output instead of `+instead)
	fl.Func("parquet", "also write the same table as Parquet, with types, to this `file`, such as \"result.parquet\"", func(path string) error {
		f.parquetFile = path
		if ext := strings.ToLower(filepath.Ext(path)); ext == ".gz" || ext == ".zst" {
			return errPacked
		}
		return nil
	})
}

// outputs returns what the flags write, with further outputs of the command.
func (f *figureFiles) outputs(more ...output) []output {
	return append([]output{{"json", f.jsonFile, false}, {"csv", f.csvFile, false}, {"parquet", f.parquetFile, false}}, more...)
}

// files returns the files that hold a result and the table of its runs, with further files of the command.
func (f *figureFiles) files(result any, t *flat.Table, more ...resultFile) []resultFile {
	return append([]resultFile{
		jsonFile(f.jsonFile, result),
		{path: f.csvFile, fill: t.WriteCSV},
		{path: f.parquetFile, fill: func(w io.Writer) error { return parquet.WriteTable(w, t) }},
	}, more...)
}

// onStdout reports whether one of some outputs takes standard output, which then holds nothing else.
func onStdout(outputs []output) bool {
	for _, o := range outputs {
		if o.path == "-" {
			return true
		}
	}
	return false
}
