package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/units"
)

func newCorpus(catalogue setting.Catalogue) *cobra.Command {
	c := &cobra.Command{
		Use:   "corpus",
		Short: "List, fetch and verify the traces of the corpus; check and anonymize traces",
		Args:  knownCommand,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("missing command: want list, fetch, verify, lint or anonymize")
		},
	}
	c.AddCommand(newCorpusList(), newCorpusFetch(), newCorpusVerify(), newCorpusLint(catalogue),
		newCorpusAnonymize(catalogue))
	return c
}

// corpusFlags are the flags of commands about the corpus.
type corpusFlags struct {
	dir   string
	files outputs
}

// addDir adds the flag that names the folder of fetched traces.
func (f *corpusFlags) addDir(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "dir", "", "folder of fetched traces (default: vramyard/corpus in the "+
		"user's folder for caches)")
}

// folder returns the folder of fetched traces.
func (f *corpusFlags) folder() (string, error) {
	if f.dir != "" {
		return f.dir, nil
	}
	return corpus.Dir()
}

// corpusEntries returns the cards of names, or all cards.
func corpusEntries(names []string) ([]corpus.Entry, error) {
	if len(names) == 0 {
		return corpus.Read().Traces, nil
	}
	var all []corpus.Entry
	for _, n := range names {
		e, ok := corpus.Lookup(n)
		if !ok {
			return nil, fmt.Errorf("unknown trace %q: %s", n, nearest.Want(n, corpus.Names()))
		}
		all = append(all, e)
	}
	return all, nil
}

// corpusRow is a trace of the corpus and its state.
type corpusRow struct {
	corpus.Entry
	State string `json:"state"`          // "inside the program", "fetched" or "not fetched"
	Path  string `json:"path,omitempty"` // file of a fetched trace
}

// The states of a trace of the corpus.
const (
	stateInside  = "inside the program"
	stateFetched = "fetched"
	stateAbsent  = "not fetched"
)

// corpusRows returns the cards with their states in a folder.
func corpusRows(entries []corpus.Entry, dir string) (rows []corpusRow) {
	for _, e := range entries {
		r := corpusRow{Entry: e, State: stateAbsent}
		switch {
		case e.Inside():
			r.State = stateInside
		case e.Fetched(dir):
			r.State, r.Path = stateFetched, e.Path(dir)
		}
		rows = append(rows, r)
	}
	return rows
}

// corpusColumns are the columns of the list.
var corpusColumns = []report.ColumnOf[corpusRow]{
	report.Texts("trace", "", func(r corpusRow) string { return r.Name }),
	report.Texts("events", "", func(r corpusRow) string { return fmt.Sprint(r.Stats.Events) }).AtRight(),
	report.Texts("peak", "most live bytes", func(r corpusRow) string { return units.Bytes(r.Stats.Peak) }).AtRight(),
	report.Texts("object", "bytes to fetch", func(r corpusRow) string {
		if r.Inside() {
			return ""
		}
		return units.Bytes(r.ObjectBytes)
	}).AtRight(),
	report.Texts("license", "", func(r corpusRow) string { return r.License }),
	report.Texts("state", "", func(r corpusRow) string { return r.State }),
}

// corpusList is the list as JSON.
type corpusList struct {
	Schema     string           `json:"schema"`
	Version    int              `json:"version"`    // of the corpus
	Provenance provenance.Build `json:"provenance"` // of the program
	Traces     []corpusRow      `json:"traces"`
}

func newCorpusList() *cobra.Command {
	var f corpusFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the traces of the corpus",
		Long: `List the traces of the corpus with their numbers of events, peak live bytes, bytes to fetch, licenses, and whether they are
inside the program, fetched or not fetched. Every command accepts an available trace by name in place of a file.
docs/corpus.md has a card for each trace; --json has the same facts.`,
		Example: "  vramyard corpus list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := f.folder()
			if err = cmp.Or(f.files.check(), err); err != nil {
				return err
			}
			m := corpus.Read()
			l := corpusList{m.Schema, m.Version, provenance.Read(), corpusRows(m.Traces, dir)}
			f.files.json(l)
			return f.files.write(cmd.OutOrStdout(), func(w io.Writer) error {
				t := report.NewSheet("", corpusColumns, l.Traces)
				_, err := fmt.Fprintln(w, t.Terminal(w))
				return err
			})
		},
	}
	f.addDir(c)
	f.files.add(c, "json", `also write the list as JSON to this file, "-" for standard output instead of the table`)
	return c
}

func newCorpusFetch() *cobra.Command {
	var f corpusFlags
	var from string
	c := &cobra.Command{
		Use:   "fetch [TRACE...]",
		Short: "Fetch traces of the corpus",
		Long: `Copy traces of the corpus, or all of them, from an archive to a folder. The archive is a folder or an address that begins with
https:// or http://. The folder corpus of a clone of the repository is one, and so is the folder of an earlier fetch.

The default archive is the project's release of this version of the corpus, which is not published yet: until then,
fetch from a clone with --from.

Each file appears under its name only after its content has the SHA-256 of the program's manifest. Intact files are
kept, so a fetch that was interrupted continues where it stopped.`,
		Example: "  vramyard corpus fetch --from corpus\n" +
			"  vramyard corpus fetch --from https://example.org/corpus meta_gpt2xl_amp",
		RunE: func(cmd *cobra.Command, args []string) error { return f.fetch(cmd, args, from) },
	}
	f.addDir(c)
	c.Flags().StringVar(&from, "from", corpus.Release(), "archive: a folder or an address")
	return c
}

func (f *corpusFlags) fetch(cmd *cobra.Command, names []string, from string) error {
	entries, err := corpusEntries(names)
	if err != nil {
		return err
	}
	if err := corpus.CheckArchive(from); err != nil {
		return flagError("from", err)
	}
	dir, err := f.folder()
	if err != nil {
		return err
	}
	var kept, fetched, inside int
	p := begin(cmd, stage{what: "fetching the corpus", unit: "traces"})
	for i, e := range entries {
		p.reached(int64(i), int64(len(entries)))
		if e.Inside() {
			inside++
			continue
		}
		copied, err := e.Fetch(cmd.Context(), from, dir)
		switch {
		case err != nil && from == corpus.Release():
			return fmt.Errorf("%s: %w: the release is not published yet: fetch from a clone, such as --from corpus", e.Name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", e.Name, err)
		case copied:
			fetched++
		default:
			kept++
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s fetched to %s, %d intact before, %d inside the program\n",
		units.Several(fetched, "trace"), dir, kept, inside)
	return err
}

func newCorpusVerify() *cobra.Command {
	var f corpusFlags
	c := &cobra.Command{
		Use:   "verify [TRACE...]",
		Short: "Compare traces of the corpus with their cards",
		Long: `Read traces of the corpus, those inside the program and the fetched ones, and compare the SHA-256 and every statistic
with the card. The exit status is 1 if a trace differs. A trace that is not fetched is an error if it is named, and is
counted otherwise.`,
		Example: "  vramyard corpus verify",
		RunE:    f.verify,
	}
	f.addDir(c)
	return c
}

func (f *corpusFlags) verify(cmd *cobra.Command, names []string) error {
	entries, err := corpusEntries(names)
	if err != nil {
		return err
	}
	dir, err := f.folder()
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil && cmd.Flags().Changed("dir") {
		return flagError("dir", err)
	}
	wrong, absent := 0, 0
	for _, r := range corpusRows(entries, dir) {
		if r.State == stateAbsent && len(names) == 0 {
			absent++
			continue
		}
		t, err := r.Open(dir, reading(cmd, r.Name, formats.Options{}))
		if err == nil {
			err = r.Check(walking(cmd, "verifying", t))
		}
		if err != nil && r.State == stateAbsent {
			return err
		}
		if err != nil {
			wrong++
			tell(cmd.ErrOrStderr(), "vramyard: %s", oneLine(err))
		}
	}
	checked := len(entries) - absent
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d of %s as on the card, %d not fetched\n", checked-wrong,
		units.Several(checked, "trace"), absent)
	if wrong > 0 {
		err = errors.Join(failure{fmt.Errorf("%d of %s differ", wrong, units.Several(checked, "trace"))}, err)
	}
	return err
}

// openNamed opens the trace of the corpus with a name. It returns nil if there is no such trace.
func openNamed(name string, o formats.Options) (*trace.Trace, error) {
	e, ok := corpus.Lookup(name)
	if !ok {
		return nil, nil
	}
	dir, err := corpus.Dir()
	if err != nil && !e.Inside() {
		return nil, err
	}
	return e.Open(dir, o)
}
