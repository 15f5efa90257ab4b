package strategies_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/strategies"
)

// semanticsFile has a digest of the decisions of every strategy in every sequence.
var semanticsFile = filepath.Join("testdata", "semantics.txt")

// semanticsAbout is the beginning of the file.
const semanticsAbout = `# Digests of the decisions of every strategy: see TestSemantics. Written by
#     go test ./strategies -run TestSemantics -rewrite
# A row is a name of the catalogue; NAME.FIELD is every value worth trying of that setting, NAME.* has
# random settings, NAME.vectors the settings of the golden vectors. The columns from the fourth are
# sequences of events; the first row has their hashes.
`

// TestSemantics replays sequences of events through every name of the catalogue, and through values
// of each setting, and compares digests of all decisions with a file. Where a stored result would
// be valid (equal name, configuration, version and sequence), an equal digest is required:
//
//   - A digest that changed under its version fails: raise the version at the strategy's entry in
//     strategies.go, by [setting.Spec.WithSemantics]. -rewrite refuses to write such a digest.
//   - A version that rises while no digest of the strategy changes fails, because it would discard
//     valid results. If the difference is in none of the sequences, add one that shows it: a new or
//     changed column is not compared, and explains a raised version.
//   - New names, settings and sequences, and raised versions, are written by -rewrite.
func TestSemantics(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a run without -short: replays presets and settings on ten sequences")
	}
	columns, err := sequences()
	require.NoError(t, err)
	is := semanticsTable{columns: []string{"strategy", "version", "config"}}
	for _, s := range columns {
		is.columns, is.hashes = append(is.columns, s.name), append(is.hashes, s.hash)
	}
	is.rows = semanticsRows(t)
	require.NoError(t, digestAll(is.rows, columns))
	stored, err := os.ReadFile(semanticsFile)
	if !*rewrite || !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	was, err := parseSemantics(string(stored))
	require.NoError(t, err)
	require.Empty(t, refusals(was, is), "go test ./strategies -run TestSemantics -rewrite, when this is settled")
	if *rewrite {
		require.NoError(t, os.WriteFile(semanticsFile, []byte(is.String()), 0o644))
		return
	}
	require.True(t, is.String() == string(stored), "%s is out of date: go test ./strategies -run TestSemantics -rewrite",
		semanticsFile)
}

// semanticsRow is a row of the file: the setups of one name or of one setting, and a digest for
// each sequence.
type semanticsRow struct {
	spec    string // entry of the catalogue that has the version; not in the file
	setting bool   // the row of a setting, which is replayed in some sequences only; not in the file
	name    string
	version string // [setting.Setup.Semantics]
	config  string // hash of the configurations
	digests []string
	setups  []setting.Setup
}

// semanticsRows returns the rows of the catalogue and of some shards by name, without digests.
func semanticsRows(t *testing.T) (rows []semanticsRow) {
	t.Helper()
	c := strategies.All()
	c = append(c, setting.Sharded(c))
	specs := map[string]setting.Spec{}
	for _, s := range c {
		specs[s.Name] = s
		for _, o := range s.Originals {
			specs[o.Name] = o
		}
	}
	for _, name := range append(c.Names(), "sharded:tlsf", "sharded:caching", "sharded:bestfit:growth") {
		spec, ok := specs[name]
		if base, _, _ := strings.Cut(name, ":"); !ok {
			spec = specs[base]
		}
		setup, err := c.Lookup(name, nil)
		require.NoError(t, err)
		rows = append(rows, semanticsRow{spec: spec.Name, name: name, setups: []setting.Setup{setup}})
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		rows = append(rows, settingRows(t, c, specs[name])...)
	}
	for i := range rows {
		r := &rows[i]
		h := sha256.New()
		for _, s := range r.setups {
			config, err := json.Marshal(s.Config)
			require.NoError(t, err)
			fmt.Fprintf(h, "%s\n", config)
		}
		r.version, r.config = r.setups[0].Semantics, short(h.Sum(nil))
	}
	slices.SortFunc(rows, func(a, b semanticsRow) int { return strings.Compare(a.name, b.name) })
	return rows
}

// semanticsPoints is the number of random points of each strategy's grid.
const semanticsPoints = 6

// settingRows returns a row for each setting with values worth trying, one for random points of the
// grid, where any settings may meet, and one for the configurations of the golden vectors.
func settingRows(t *testing.T, c setting.Catalogue, spec setting.Spec) (rows []semanticsRow) {
	t.Helper()
	row := semanticsRow{spec: spec.Name, setting: true}
	add := func(config json.RawMessage) {
		name := spec.Name
		if name == "sharded" {
			name += ":tlsf"
		}
		if setup, err := c.Lookup(name, config); err == nil { // else values need or exclude each other
			row.setups = append(row.setups, setup)
		}
	}
	for _, k := range spec.Knobs {
		row.name, row.setups = spec.Name+"."+k.Name, nil
		for _, value := range k.Grid {
			add(json.RawMessage(`{"` + k.Name + `":` + value + `}`))
		}
		if len(row.setups) > 0 {
			rows = append(rows, row)
		}
	}
	row.name, row.setups = spec.Name+".*", nil
	rng := rand.New(rand.NewPCG(31, 1))
	for tries := 0; len(rows) > 1 && len(row.setups) < semanticsPoints && tries < 100*semanticsPoints; tries++ {
		add(randomPoint(t, rng, spec))
	}
	if len(row.setups) > 0 {
		rows = append(rows, row)
	}
	row.name, row.setups = spec.Name+".vectors", nil
	all, err := vectors.All()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, v := range all {
		if v.Strategy == spec.Name && !seen[string(v.Config)] {
			seen[string(v.Config)] = true
			add(v.Config)
		}
	}
	if len(row.setups) > 0 {
		rows = append(rows, row)
	}
	return rows
}

// digestAll fills in the digests.
func digestAll(rows []semanticsRow, columns []sequence) error {
	failed := make([]error, len(rows))
	var all sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				r := &rows[i]
				for _, s := range columns {
					digest := "-"
					if s.replays(*r) {
						var err error
						digest, err = digestOf(r.setups, s)
						failed[i] = errors.Join(failed[i], err)
					}
					r.digests = append(r.digests, digest)
				}
			}
		})
	}
	for i := range rows {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(failed...)
}

// digestOf returns the digest of the decisions of setups in a sequence.
func digestOf(setups []setting.Setup, s sequence) (string, error) {
	a := account{hash: sha256.New()}
	for _, setup := range setups {
		for _, p := range s.parts {
			dev, err := sim.New(p.device)
			if err != nil {
				return "", err
			}
			fitted := setup.ForCapacity(p.device.Capacity)
			fitted.Forecast = p.forecast
			a.calls = device.Calls{}
			_, err = p.trace.Run(fitted, dev, replay.Options{Observe: a.observe})
			if err != nil && a.built {
				return "", fmt.Errorf("%s: %s, %s: %w", setup.Name, s.name, p.trace.Head().Header.Name, err)
			}
		}
	}
	return short(a.hash.Sum(nil)), nil
}

// account hashes the decisions of a strategy: the answer to each call, the calls of the device and
// the memory held; at intervals also counters and the largest free chunk, because figures depend on
// them.
type account struct {
	hash  hash.Hash
	line  []byte
	calls device.Calls
	built bool
}

// accountEvery is the number of events between two looks at the counters.
const accountEvery = 32

// failures are the errors that a strategy returns for different reasons. Their texts do not count.
var failures = []error{
	alloc.ErrOutOfMemory, alloc.ErrInvalidRequest, alloc.ErrInvalidFree, alloc.ErrUnsupported, alloc.ErrClosed,
}

// observe adds an event to the hash.
func (a *account) observe(o replay.Observation) error {
	if o.Event < 0 {
		a.built = o.Err == nil && o.Panic == nil
	}
	failure := 0
	switch {
	case o.Panic != nil:
		failure = 1
	case o.Err != nil:
		failure = 3 + slices.IndexFunc(failures, func(e error) bool { return errors.Is(o.Err, e) })
	}
	a.line = a.line[:0]
	a.add(uint64(o.Event), uint64(failure), uint64(o.Block.Addr), uint64(o.Block.Size), uint64(o.Returned))
	if o.Faults != nil {
		if u := o.Faults.Usage(); u.Calls != a.calls {
			a.calls = u.Calls
			a.add(uint64(u.Held))
			for kind, c := range u.Calls {
				if c.Done+c.Failed > 0 {
					a.line = append(a.line, device.Call(kind).String()...)
					a.add(c.Done, c.Failed)
				}
			}
		}
	}
	if o.Event%accountEvery == 0 && o.Strategy != nil {
		s := o.Strategy.Stats()
		a.add(uint64(s.Requested), uint64(s.Allocated), uint64(s.Active), uint64(s.Reserved), uint64(s.Regions),
			uint64(power.LargestFree(o.Strategy)))
	}
	_, _ = a.hash.Write(a.line) // it never fails
	return nil
}

// add adds numbers to the line.
func (a *account) add(numbers ...uint64) {
	for _, n := range numbers {
		a.line = binary.AppendUvarint(a.line, n)
	}
}

// semanticsTable is the content of the file.
type semanticsTable struct {
	columns []string // their names; the digests begin with the fourth
	hashes  []string // of the sequences, by column
	rows    []semanticsRow
}

// fixedColumns is the number of columns before the digests.
const fixedColumns = 3

// String returns the file: a line for each row, in columns.
func (s semanticsTable) String() string {
	lines := [][]string{s.columns, append([]string{"(events)", "-", "-"}, s.hashes...)}
	for _, r := range s.rows {
		lines = append(lines, append([]string{r.name, r.version, r.config}, r.digests...))
	}
	widths := make([]int, len(s.columns))
	for _, l := range lines {
		for i, cell := range l {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	b.WriteString(semanticsAbout)
	for _, l := range lines {
		var line string
		for i, cell := range l {
			line += fmt.Sprintf("%-*s ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// parseSemantics reads the file; an empty one is an empty table.
func parseSemantics(text string) (s semanticsTable, err error) {
	for line := range strings.Lines(text) {
		cells := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case s.columns == nil:
			s.columns = cells
		case len(cells) != len(s.columns):
			return s, fmt.Errorf("%s: %q: want %d columns", semanticsFile, line, len(s.columns))
		case s.hashes == nil:
			s.hashes = cells[fixedColumns:]
		default:
			s.rows = append(s.rows, semanticsRow{
				name: cells[0], version: cells[1], config: cells[2], digests: cells[fixedColumns:],
			})
		}
	}
	return s, nil
}

// change describes how a row differs from the stored one.
type change struct {
	fresh  bool   // the row, its configuration, its version or a sequence is new, so digests may differ
	column string // the first sequence with another digest under the same version
	raised bool   // the version of the strategy, without the strategies in it
}

// compareRow compares a row of the table with the stored one of that name, if there is one.
func (s semanticsTable) compareRow(was semanticsTable, r semanticsRow) (c change, err error) {
	i := slices.IndexFunc(was.rows, func(old semanticsRow) bool { return old.name == r.name })
	if i < 0 {
		return change{fresh: true}, nil
	}
	old := was.rows[i]
	from, err := ownVersion(old.version)
	to, failed := ownVersion(r.version)
	if err = cmp.Or(err, failed); err != nil || to < from {
		return c, cmp.Or(err, fmt.Errorf("%s: version %d after %d: versions only rise", r.name, to, from))
	}
	c.raised = to > from
	c.fresh = old.config != r.config
	for i, hash := range s.hashes {
		j := slices.Index(was.columns, s.columns[fixedColumns+i]) - fixedColumns
		switch {
		case j < 0 || was.hashes[j] != hash || old.config != r.config:
			c.fresh = true
		case old.digests[j] == r.digests[i]:
		case old.digests[j] == "-" || old.version != r.version:
			c.fresh = true
		default:
			c.column = cmp.Or(c.column, s.columns[fixedColumns+i])
		}
	}
	return c, nil
}

// ownVersion returns the version of a strategy without the strategies in it.
func ownVersion(semantics string) (int, error) {
	own, _, _ := strings.Cut(semantics, ",")
	return strconv.Atoi(own)
}

// refusals returns what forbids to store a table, one line for each entry of the catalogue.
func refusals(was, is semanticsTable) (all []string) {
	changed := map[string][]string{} // rows under an unchanged version, by entry
	raised, fresh := map[string]bool{}, map[string]bool{}
	var specs []string
	for _, r := range is.rows {
		c, err := is.compareRow(was, r)
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		if !slices.Contains(specs, r.spec) {
			specs = append(specs, r.spec)
		}
		raised[r.spec] = raised[r.spec] || c.raised
		fresh[r.spec] = fresh[r.spec] || c.fresh
		if c.column != "" {
			changed[r.spec] = append(changed[r.spec], fmt.Sprintf("%s (%s)", r.name, c.column))
		}
	}
	for _, spec := range specs {
		rows := changed[spec]
		switch {
		case spec == "sharded" && len(changed) > 1: // the strategy in the shards is to blame
		case len(rows) > 0:
			all = append(all, fmt.Sprintf("%s: other decisions under the same version: %s: raise it by WithSemantics in "+
				"strategies.go; if the replay or the simulated device has changed, raise compare.Engine",
				spec, strings.Join(rows, ", ")))
		case raised[spec] && !fresh[spec]:
			all = append(all, fmt.Sprintf("%s: its version was raised, but no decision differs, so valid results would be "+
				"discarded: add a sequence that shows the difference", spec))
		}
	}
	return all
}

// semanticsStored is a small file.
const semanticsStored = `# a comment
strategy   version    config   one      two
(events)   -          -        00000001 00000002
a          1          0000000a 10000000 20000000
a.knob     1          0000000b 30000000 -
sharded:a  1,a=1      0000000c 40000000 50000000
`

// semanticsEdits are changes of the small file as an author may make them, and the refusals.
var semanticsEdits = map[string]struct {
	edits   []string // pairs, of which the first is replaced by the second
	refused string
}{
	"nothing": {nil, ""},
	"a placement": {
		[]string{"20000000", "2000000f"},
		"a: other decisions under the same version: a (two): raise it",
	},
	"a placement by a setting": {
		[]string{"30000000", "3000000f"},
		"a: other decisions under the same version: a.knob (one)",
	},
	"a placement in shards": {
		[]string{"40000000", "4000000f"},
		"sharded: other decisions under the same version: sharded:a (one)",
	},
	"a raise": {
		[]string{" 1  ", " 2  ", "a=1", "a=2"},
		"a: its version was raised, but no decision differs",
	},
	"a raise of shards": {
		[]string{"1,a=1", "2,a=1"},
		"sharded: its version was raised, but no decision differs",
	},
	"a placement and a raise": {
		[]string{" 1  ", " 2  ", "a=1", "a=2", "20000000", "2000000f", "50000000", "5000000f"},
		"",
	},
	"a raise in shards only": {
		[]string{"a=1", "a=2", "50000000", "5000000f"},
		"",
	},
	"a lower version": {
		[]string{"1,a=1", "0,a=1"},
		"sharded:a: version 0 after 1: versions only rise",
	},
	"another sequence": {
		[]string{"00000002", "0000000f", "20000000", "2000000f", "50000000", "5000000f"},
		"",
	},
	"another sequence and more": {
		[]string{"00000002", "0000000f", "20000000", "2000000f", "10000000", "1000000f"},
		"a (one)",
	},
	"a raise for another sequence": {
		[]string{"00000002", "0000000f", " 1  ", " 2  "},
		"",
	},
	"a new sequence": {
		[]string{"two", "three", "20000000", "2000000f"},
		"",
	},
	"another default": {
		[]string{"0000000a", "0000000f", "10000000", "1000000f"},
		"",
	},
	"a setting in more sequences": {
		[]string{"30000000 -", "30000000 60000000"},
		"",
	},
	"another name": {
		[]string{"a.knob", "a.nut", "30000000", "3000000f"},
		"",
	},
	"no version": {
		[]string{"1,a=1", "-"},
		`parsing "-"`,
	},
	"a name that is no longer there": {
		[]string{"a.knob     1          0000000b 30000000 -\n", ""},
		"",
	},
}

// TestSemanticsRules changes a table as an author may, and compares what is refused.
func TestSemanticsRules(t *testing.T) {
	was, err := parseSemantics(semanticsStored)
	require.NoError(t, err)
	for name, c := range semanticsEdits {
		is, err := parseSemantics(strings.NewReplacer(c.edits...).Replace(semanticsStored))
		require.NoError(t, err)
		for i := range is.rows {
			is.rows[i].spec = "a"
			if strings.HasPrefix(is.rows[i].name, "sharded") {
				is.rows[i].spec = "sharded"
			}
		}
		got := strings.Join(refusals(was, is), "\n")
		if c.refused == "" {
			require.Empty(t, got, name)
		}
		require.Contains(t, got, c.refused, name)
		again, err := parseSemantics(is.String())
		require.NoError(t, err)
		require.Equal(t, is.String(), again.String(), name)
	}
	_, err = parseSemantics(semanticsStored + "a b\n")
	require.ErrorContains(t, err, "want 5 columns")
}
