package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/fileio"
)

// output is a file that a command writes, named by a flag or, without one, by an argument. The path
// "-" is standard output, and "" nothing for a flag.
type output struct {
	flag, path string
	text       bool                  // lines that may follow other lines on standard output
	words      bool                  // text for people, which fits the window of a terminal
	fill       func(io.Writer) error // nil: the command writes the file itself
}

// outputs are the files of a command in the order of their flags: they are checked before the work
// begins and written after it.
type outputs struct{ all []*output }

// argument returns the outputs of a command that names its only output as an argument.
func argument(path string) *outputs { return &outputs{[]*output{{path: path}}} }

func (o *outputs) add(c *cobra.Command, flag, usage string) *output {
	out := &output{flag: flag}
	c.Flags().StringVar(&out.path, flag, "", strings.Replace(usage, "this file", "this `file`", 1)) // its value in --help
	o.all = append(o.all, out)
	return out
}

// addFigures adds the flags of a result as JSON and of its table as CSV and Parquet; instead names
// the text that a file on standard output replaces.
func (o *outputs) addFigures(c *cobra.Command, instead string) {
	o.add(c, "json", `also write all figures as JSON to this file, "-" for standard output instead of `+instead)
	o.add(c, "csv",
		`also write the figures as a table in CSV, one row for each run, to this file, "-" for standard output instead of `+
			instead)
	columns := &output{flag: "parquet"}
	o.all = append(o.all, columns)
	c.Flags().Func("parquet", "also write the same table as Parquet, with types, to this `file`, such as "+
		"\"result.parquet\"", func(path string) error {
		columns.path = path
		if ext := strings.ToLower(filepath.Ext(path)); ext == ".gz" || ext == ".zst" {
			return errPacked
		}
		return nil
	})
}

func (o *outputs) addHTML(c *cobra.Command) {
	o.add(c, "html", `write tables and pictures to this file, an HTML page that opens offline, "-" for standard output`)
}

func (o *outputs) of(flag string) *output {
	return o.all[slices.IndexFunc(o.all, func(out *output) bool { return out.flag == flag })]
}

func (o *outputs) wanted(flag string) bool { return o.of(flag).path != "" }

// onStdout reports whether an output takes standard output, which then holds nothing else.
func (o *outputs) onStdout() bool {
	return slices.ContainsFunc(o.all, func(out *output) bool { return out.path == "-" })
}

// json sets the content of --json.
func (o *outputs) json(result any) {
	o.of("json").fill = func(w io.Writer) error { return encodeJSON(w, result) }
}

// figures sets the contents of the flags of [outputs.addFigures].
func (o *outputs) figures(result any, t *flat.Table) {
	o.json(result)
	o.of("csv").fill = t.WriteCSV
	o.of("parquet").fill = func(w io.Writer) error { return parquet.WriteTable(w, t) }
}

// page sets the content of --html, which is made when it is written. The command and the version
// are filled in.
func (o *outputs) page(cmd *cobra.Command, args []string, draw func() (*page.Report, error)) {
	o.of("html").fill = func(w io.Writer) error {
		r, err := draw()
		if err != nil {
			return err
		}
		r.Command, r.Provenance = commandLine(cmd, args), provenance.Read()
		return page.Write(w, r)
	}
}

// check refuses outputs before the work begins if they would overwrite each other or a file that is
// read, if their folder cannot be written to, or if their ending promises another form.
func (o *outputs) check(inputs ...string) error {
	for i, out := range o.all {
		if out.path == "" && out.flag != "" {
			continue
		}
		if err := out.check(inputs, o.all[:i]); err != nil {
			if out.flag != "" {
				err = flagError(out.flag, err)
			}
			return err
		}
	}
	return nil
}

// check checks one output against the files to read and the outputs before it.
func (o *output) check(inputs []string, before []*output) error {
	for _, in := range inputs {
		if o.path != "-" && sameFile(o.path, in) {
			return fmt.Errorf("%s is a file to read", o.path)
		}
	}
	for _, other := range before {
		if sameFile(o.path, other.path) && !(o.path == "-" && o.text && other.text) {
			return fmt.Errorf("%s is where --%s is written", o.path, other.flag)
		}
	}
	if strings.HasPrefix(o.path, "--") {
		return fmt.Errorf("%s is a flag, not the name of a file: want a name, such as ./%s", o.path, o.path)
	}
	err := fileio.CheckOutput(o.path)
	if want := endings[o.flag]; err == nil && len(want) > 0 {
		err = checkEnding(o.path, want)
	}
	return err
}

// write prints the tables of a command with show, unless an output takes standard output, and then
// writes the outputs. If show fails no file is written. If a file cannot be written the others
// still are; the errors are joined.
func (o *outputs) write(stdout io.Writer, show func(io.Writer) error) error {
	if !o.onStdout() {
		if err := fileio.Write("-", stdout, func(w io.Writer) error { return show(report.Over(stdout, w)) }); err != nil {
			return err
		}
	}
	var errs []error
	for _, out := range o.all {
		to := document(stdout)
		if out.words {
			to = stdout
		}
		if out.path != "" && out.fill != nil {
			errs = append(errs, fileio.Write(out.path, to, out.fill))
		}
	}
	return errors.Join(errs...)
}

// conclude ends a command whose work returned err. Without one it writes the tables and the
// outputs. If the command was interrupted it shows the finished part, if there is one.
func (o *outputs) conclude(cmd *cobra.Command, err error, part bool, what string, show func(io.Writer) error) error {
	switch {
	case errors.Is(err, context.Canceled) && part:
		return o.finished(cmd.OutOrStdout(), what, show)
	case err != nil:
		return err
	}
	return o.write(cmd.OutOrStdout(), show)
}

// finished shows the finished part of an interrupted command, marked as partial, unless an
// output takes standard output.
func (o *outputs) finished(stdout io.Writer, what string, show func(io.Writer) error) error {
	if o.onStdout() {
		return interrupted(what)
	}
	err := fileio.Write("-", stdout, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "partial: %s\n\n", what); err != nil {
			return err
		}
		return show(report.Over(stdout, w))
	})
	if err != nil {
		return err
	}
	return interrupted(what)
}

// latch is a writer that stores its first error instead of returning it, so that the caller
// continues.
type latch struct {
	io.Writer
	err error
}

func (l *latch) Write(b []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.Writer.Write(b)
	}
	return len(b), nil
}
