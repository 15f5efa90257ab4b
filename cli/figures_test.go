package cli

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// figured are command lines that write figures, with how many rows their tables have.
func figured(t *testing.T) map[string]struct {
	args []string
	rows int
} {
	path := tabled(t)
	return map[string]struct {
		args []string
		rows int
	}{
		"compare": {[]string{"compare", "--strategies", "bfc,caching,slab:xdl", path, write(t, "u.trace", small)}, 6},
		"replay":  {[]string{"replay", "--strategy", "caching", path}, 1},
		"bench":   {benching("--strategies", "bfc,tlsf", "--workloads", "w1,w2"), 6},
		"tune":    {[]string{"tune", "--strategy", "bfc", "--settings", "allow_growth,mended", path}, 3 + 4},
		"offline": {[]string{"offline", path}, 4},
		"remat":   {[]string{"remat", unet, "--heuristics", "lru", "--strategies", "bfc", "--budgets", "0.6,1"}, 6},
		"whatif":  {[]string{"whatif", "--device", "sim:16MiB", path}, 0},
		"stats":   {[]string{"stats", tableOf(t, "r.parquet", []string{"bfc", "tlsf"}, hundreds, lessOnSeven)}, 4},
		"fleet":   {[]string{"fleet", "--device", "sim:16MiB", path, write(t, "u.trace", small)}, 0},
	}
}

// readCSV returns the header and the rows of a table.
func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	return rows
}

// readParquet returns the same of a table in Parquet, as CSV has it, and the kinds of the columns.
func readParquet(t *testing.T, path string) (rows [][]string, kinds map[string]parquet.Kind) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	r := parquet.NewReader(file)
	kinds = map[string]parquet.Kind{}
	var names []string
	for _, f := range r.Schema().Fields() {
		names = append(names, f.Name())
		kinds[f.Name()] = f.Type().Kind()
	}
	rows = append(rows, names)
	read := make([]parquet.Row, r.NumRows())
	n, _ := r.ReadRows(read)
	require.EqualValues(t, r.NumRows(), n)
	for _, row := range read {
		cells := make([]string, len(names))
		for i, v := range row {
			switch {
			case v.IsNull():
			case v.Kind() == parquet.Double:
				cells[i] = strconv.FormatFloat(v.Double(), 'g', -1, 64)
			default:
				cells[i] = v.String()
			}
		}
		rows = append(rows, cells)
	}
	return rows, kinds
}

func TestParquetHasTheValuesOfTheCSV(t *testing.T) {
	for name, c := range figured(t) {
		dir := t.TempDir()
		asCSV, asParquet := filepath.Join(dir, "t.csv"), filepath.Join(dir, "t.parquet")
		out := succeed(t, append(c.args, "--csv", asCSV, "--parquet", asParquet)...)
		require.NotEmpty(t, out, "what is for people is there too")
		rows, kinds := readParquet(t, asParquet)
		require.Equal(t, readCSV(t, asCSV), rows, name)
		if c.rows > 0 {
			require.Len(t, rows, 1+c.rows, name)
		}
		for column, kind := range map[string]parquet.Kind{
			"strategy": parquet.ByteArray, "peak_reserved_bytes": parquet.Int64, "reservation_waste": parquet.Double,
			"starts":    parquet.Boolean,
			"ns_per_op": parquet.Double, "ratio": parquet.Double, "is_best": parquet.Boolean, "events": parquet.Int64,
		} {
			if got, ok := kinds[column]; ok {
				require.Equal(t, kind, got, "%s of %s", column, name)
			}
		}
	}
}

func TestParquetIsNotCompressedTwice(t *testing.T) {
	status, _, stderr := command(t, "compare", "--parquet", "a.parquet.gz", tabled(t))
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "--parquet")
	require.Contains(t, stderr, errPacked.Error())
}

// TestEverySettingHasARow holds those that decide alike to the row that was replayed for them.
func TestEverySettingHasARow(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "w.csv")
	_, r := withJSON(t, "whatif", "--device", "sim:16MiB", "--csv", file, tabled(t))
	rows := readCSV(t, file)
	column := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	byLabel := map[string][]string{}
	for _, row := range rows[1:] {
		byLabel[column(row, "label")] = row
	}
	require.Len(t, rows, 1+int(r.at("point_count").(float64)))
	alike := 0
	for _, run := range r.objects(t, "runs") {
		label := run.show(t, "text:label")
		own := byLabel[label]
		require.Equal(t, label, column(own, "replayed_as"))
		same, _ := run.at("same_as").([]any)
		for _, other := range same {
			row := byLabel[other.(string)]
			require.NotNil(t, row, other)
			require.Equal(t, label, column(row, "replayed_as"))
			for _, name := range []string{"peak_reserved_bytes", "min_capacity_bytes", "carried", "ns_per_op"} {
				require.Equal(t, column(own, name), column(row, name), name)
			}
			alike++
		}
	}
	require.NotZero(t, alike, "no settings decide alike on this trace")
	require.NotEqual(t, "", column(byLabel["caching expandable_segments:True"], "environment"))
	a, b := filepath.Join(dir, "a.svg"), filepath.Join(dir, "b.svg")
	asJSON := filepath.Join(dir, "w.json")
	succeed(t, "whatif", "--device", "sim:16MiB", "--csv", file, "--json", asJSON, tabled(t))
	succeed(t, "plot", "--out", a, "--metric", "peak_reserved_bytes", asJSON)
	succeed(t, "plot", "--out", b, "--metric", "peak_reserved_bytes", file)
	first, err := os.ReadFile(a)
	require.NoError(t, err)
	second, err := os.ReadFile(b)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

// TestTablesThatCannotBeDrawnAreNamed reads the table of a search as no comparison.
func TestTablesThatCannotBeDrawnAreNamed(t *testing.T) {
	dir := t.TempDir()
	for name, c := range figured(t) {
		if name != "tune" && name != "replay" {
			continue
		}
		file := filepath.Join(dir, name+".csv")
		succeed(t, append(c.args, "--csv", file)...)
		status, _, stderr := command(t, "plot", "--out", filepath.Join(dir, "a.svg"), file)
		require.Equal(t, exitTrouble, status)
		require.Contains(t, stderr, file+": the CSV table of "+name+" cannot be drawn: want its --json output")
	}
}
