package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// printed is a table as it was printed: a line is a map from the headings to the cells.
type printed struct {
	headings []string // nil of a table of names and values
	lines    []map[string]string
	pairs    [][2]string // of a table of names and values
}

// printedTables returns the tables of an output in their order.
func printedTables(t *testing.T, out string) (all []printed) {
	t.Helper()
	var p *printed
	lines := strings.Split(out, "\n")
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "┌"):
			all = append(all, printed{})
			p = &all[len(all)-1]
			if strings.HasPrefix(lines[i+2], "├") && strings.HasPrefix(lines[i+1], "│ ") && strings.Count(l, "┬") > 1 {
				p.headings = cellsOf(lines[i+1])
			}
		case strings.HasPrefix(l, "└"):
			p = nil
		case p != nil && strings.HasPrefix(l, "│") && p.headings == nil:
			cells := cellsOf(l)
			require.Len(t, cells, 2, l)
			p.pairs = append(p.pairs, [2]string{cells[0], cells[1]})
		case p != nil && strings.HasPrefix(l, "│") && !strings.HasPrefix(lines[i-1], "┌"):
			line := map[string]string{}
			cells := cellsOf(l)
			if strings.Join(cells[1:], "") == "" { // the label above goes on
				p.lines[len(p.lines)-1][p.headings[0]] += cells[0]
				continue
			}
			for k, cell := range cells {
				line[p.headings[k]] = cell
			}
			p.lines = append(p.lines, line)
		}
	}
	return all
}

// cellsOf returns the cells of a line of a table.
func cellsOf(l string) []string {
	cells := strings.Split(strings.Trim(l, "│"), "│")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// object is an object in JSON.
type object map[string]any

// at returns the value at a path of names with slashes between them, nil if there is none.
func (o object) at(path string) any {
	var v any = map[string]any(o)
	for name := range strings.SplitSeq(path, "/") {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[name]
	}
	return v
}

// objects returns the objects of the list at a path.
func (o object) objects(t *testing.T, path string) (all []object) {
	t.Helper()
	list, ok := o.at(path).([]any)
	require.True(t, ok, "no list at %s", path)
	for _, v := range list {
		all = append(all, v.(map[string]any))
	}
	return all
}

// show returns a figure as its column or row shows it: "bytes:peak_reserved_bytes" is the form, a
// colon and the path of the field. "—" is a figure that is null or absent.
func (o object) show(t *testing.T, what string) string {
	t.Helper()
	form, path, _ := strings.Cut(what, ":")
	v := o.at(path)
	if v == nil {
		return "—"
	}
	if text, ok := v.(string); ok {
		return text
	}
	if flag, ok := v.(bool); ok {
		return strconv.FormatBool(flag)
	}
	x, ok := v.(float64)
	require.True(t, ok, "%s: %v", path, v)
	switch form {
	case "bytes":
		return units.Bytes(device.Size(x))
	case "ns":
		return units.Nanoseconds(uint64(x))
	case "percent":
		return units.Percent(x)
	case "count":
		return strconv.FormatFloat(x, 'f', -1, 64)
	case "ratio": // of whole hundredths, with at least one decimal
		text := strconv.FormatFloat(x, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case "digits": // two, of a figure that never looks like zero
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	decimals, err := strconv.Atoi(strings.TrimPrefix(form, "fixed"))
	require.NoError(t, err, what)
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// inWords is what a column shows that is no figure of the JSON: words, but no number.
const inWords = "(words)"

// number is a cell that can be taken for a figure.
var number = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?( ([KMGTPE]iB|B|%|ns|µs|ms|s))?$`)

// hold holds every cell of a line to the field of the JSON that its heading names.
func hold(t *testing.T, p printed, line map[string]string, o object, columns map[string]string) {
	t.Helper()
	require.Len(t, columns, len(p.headings), "the headings are %q", p.headings)
	for _, h := range p.headings {
		what, known := columns[h]
		require.True(t, known, "nothing is known of the column %q", h)
		if what == inWords {
			require.NotRegexp(t, number, line[h], "%s of %v", h, line)
			continue
		}
		require.Equal(t, o.show(t, what), line[h], "%s of %v", h, line)
	}
}

// withJSON runs a command and returns its tables and the JSON that it wrote.
func withJSON(t *testing.T, args ...string) ([]printed, object) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "result.json")
	out := succeed(t, append(args, "--json", file)...)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	if raw[0] == '[' {
		raw = fmt.Appendf(nil, `{"list":%s}`, raw)
	}
	var o object
	require.NoError(t, json.Unmarshal(raw, &o))
	return printedTables(t, out), o
}

// tabled is a trace whose figures differ from each other, so that no cell can pass for its
// neighbour.
func tabled(t *testing.T) string {
	return write(t, "t.trace", "a 1 1MiB\na 2 3MiB\nf 1\na 3 2000\na 4 5MiB\nf 2\na 5 1KiB\nf 3\nf 4\n")
}

// runColumns are the columns of a comparison.
var runColumns = map[string]string{
	"strategy": "text:strategy", "min capacity": "bytes:min_capacity_bytes", "× bound": "fixed3:times_bound",
	"safe from":     "bytes:safe_from_bytes",
	"peak reserved": "bytes:peak_reserved_bytes", "waste": "percent:reservation_waste",
	"ext. frag.":   "percent:external_fragmentation_peak",
	"device calls": "count:device_calls", "device time": "ns:device_time_ns", "ns/op": "fixed0:ns_per_op",
	"by ref.": "fixed0:ns_per_op_by_reference",
	"notes":   inWords,
}

// derived adds to a run the figures that a table derives from two others. A run that failed loses
// those of the measuring replay, which no table shows.
func derived(run object) object {
	if run.at("starts") != true || run.at("oom_count") != 0. || run.at("refused_count") != 0. {
		for _, name := range []string{"peak_reserved_bytes", "reservation_waste", "external_fragmentation_peak",
			"metadata_bytes",
			"device_calls", "device_time_ns", "ns_per_op"} {
			run[name] = nil
		}
	}
	if least, ok := run.at("min_capacity_bytes").(float64); ok {
		run["times_bound"] = least / run.at("lower_bound_bytes").(float64)
	}
	return run
}

func TestTableOfCompareMatchesItsJSON(t *testing.T) {
	tables, r := withJSON(t, "compare", "--strategies", "bfc,caching,buddy:xdl,slab:xdl", tabled(t))
	require.Len(t, tables, 1)
	bound := tables[0].lines[0]
	first := r.objects(t, "runs")[0]
	require.Equal(t, "lower bound", bound["strategy"])
	require.Equal(t, first.show(t, "bytes:lower_bound_bytes"), bound["min capacity"])
	require.Equal(t, first.show(t, "bytes:lower_bound_bytes"), bound["peak reserved"])
	require.Equal(t, "1.000", bound["× bound"])
	require.Len(t, tables[0].lines, 1+4)
	for _, run := range r.objects(t, "runs") {
		for _, line := range tables[0].lines {
			if line["strategy"] == run.at("strategy") {
				hold(t, tables[0], line, derived(run), runColumns)
			}
		}
	}
}

func TestTablesOfTuneMatchItsJSON(t *testing.T) {
	tables, r := withJSON(t, "tune", "--strategy", "bfc", "--settings", "allow_growth,mended", tabled(t))
	require.Len(t, tables, 3)
	points := []string{"preset", "smallest", "fastest"}
	names := []string{"bfc", "least memory", "least time"}
	columns := map[string]string{
		"trace": "text:trace", "point": "text:point", "min capacity": runColumns["min capacity"],
		"× bound":       runColumns["× bound"],
		"peak reserved": runColumns["peak reserved"], "metadata": "bytes:metadata_bytes",
		"device calls": runColumns["device calls"],
		"device time":  runColumns["device time"], "ns/op": runColumns["ns/op"], "notes": inWords,
	}
	for i, name := range points {
		point := object(r.at(name).(map[string]any))
		point["name"] = names[i]
		hold(t, tables[0], tables[0].lines[i], point, map[string]string{
			"point": "text:name", "× bound": "fixed3:times_bound", "ns/op": "fixed0:ns_per_op",
			"settings that differ from the preset": inWords,
		})
		run := derived(point.objects(t, "runs")[0])
		run["point"] = names[i]
		hold(t, tables[1], tables[1].lines[i], run, columns)
	}
	for i, worth := range r.objects(t, "worth") {
		hold(t, tables[2], tables[2].lines[i], worth, map[string]string{
			"setting": "text:setting", "value": "text:value", "every other value: memory, time": inWords,
		})
	}
}

func TestTablesOfBenchMatchItsJSON(t *testing.T) {
	tables, r := withJSON(t, benching("--strategies", "bfc,slab", "--workloads", "w1", "--arena")...)
	require.Len(t, tables, 2)
	loops, runs := r.objects(t, "loops"), r.objects(t, "runs")
	for i, table := range tables {
		require.Equal(t, loops[i].show(t, "fixed1:ns_per_pair_median"), table.lines[0]["ns/pair"])
		require.Equal(t, loops[i].show(t, "fixed1:ns_per_pair_min"), table.lines[0]["min"])
		for j, line := range table.lines[1:] {
			run := runs[i*2+j]
			run["spread"] = (run.at("ns_per_pair_max").(float64) - run.at("ns_per_pair_min").(float64)) /
				run.at("ns_per_pair_median").(float64)
			if run["preallocates"] == true {
				run["reserved_ratio"] = "all"
			}
			run["strategy"] = line["strategy"]
			require.Contains(t, line["strategy"], runs[i*2+j].at("strategy"))
			hold(t, table, line, run, benchTableColumns)
		}
	}
}

// benchTableColumns are the columns of a benchmark.
var benchTableColumns = map[string]string{
	"strategy": "text:strategy", "ns/pair": "fixed1:ns_per_pair_median",
	"by ref.": "fixed1:ns_per_pair_by_reference/ns_per_pair_median", "min": "fixed1:ns_per_pair_min",
	"spread": "percent:spread",
	"ratio":  "fixed2:ratio_to_first", "p50": "count:latency/p50_ns", "p99": "count:latency/p99_ns",
	"p99.9": "count:latency/p999_ns",
	"max":   "count:latency/max_ns", "address": "fixed3:address_ratio", "reserved": "fixed3:reserved_ratio",
	"arena":      "fixed3:arena_ratio",
	"metadata B": "fixed1:metadata_bytes_per_block", "heap B": "fixed1:heap_bytes_per_block",
	"allocs": "digits:heap_allocs_per_pair",
}

func TestTableOfWhatifMatchesItsJSON(t *testing.T) {
	tables, r := withJSON(t, "whatif", "--device", "sim:16MiB", tabled(t))
	runs := r.objects(t, "runs")
	table := tables[0]
	for _, line := range table.lines {
		run := runs[0]
		for _, other := range runs {
			if other.at("label") == line["setting"] {
				run = other
			}
		}
		require.Equal(t, run.at("label"), line["setting"])
		run["verdict"] = map[any]string{nil: "—", true: "completes", false: "fails"}[run.at("carried")]
		if run.at("min_capacity_bytes") == nil { // a bracket
			run["min_capacity_bytes"] = line["min capacity"]
			require.Regexp(t, `^([≤>] .*|not searched|—)$`, line["min capacity"])
		}
		hold(t, table, line, derived(run), map[string]string{
			"setting": "text:label", "min capacity": "bytes:min_capacity_bytes", "on the card": "text:verdict",
			"safe from":     "bytes:safe_from_bytes",
			"peak reserved": "bytes:peak_reserved_bytes", "waste": "percent:reservation_waste",
			"device calls": "count:device_calls",
			"device time":  "ns:device_time_ns", "ns/op": "fixed0:ns_per_op", "notes": inWords,
		})
	}
}

func TestTableOfOfflineMatchesItsJSON(t *testing.T) {
	tables, r := withJSON(t, "offline", tabled(t))
	sum := r.objects(t, "traces")[0]
	require.Equal(t, sum.show(t, "bytes:lower_bound_bytes"), tables[0].lines[0]["height"])
	require.Equal(t, sum.show(t, "count:lower_bound_bytes"), tables[0].lines[0]["bytes"])
	best := object(sum.at("best").(map[string]any))
	best["method"] = "best: " + best.show(t, "text:method")
	for i, p := range append(sum.objects(t, "greedy"), best) {
		hold(t, tables[0], tables[0].lines[1+i], p, map[string]string{
			"placement": "text:method", "height": "bytes:height_bytes", "bytes": "count:height_bytes",
			"× bound": "fixed3:times_bound",
			"steps":   "count:steps", "nodes": "count:nodes", "notes": inWords,
		})
	}
}

func TestTableOfRematMatchesItsJSON(t *testing.T) {
	tables, r := withJSON(t, "remat", unet, "--heuristics", "lru", "--strategies", "bfc", "--budgets", "0.5,0.7,1")
	base := r.objects(t, "logs")[0]
	require.Len(t, tables[0].lines, 1+len(r.objects(t, "lines")))
	require.Equal(t, strconv.FormatFloat(base.at("lower_bound_bytes").(float64)/base.at("base_peak_bytes").(float64), 'f',
		3, 64), tables[0].lines[0]["feasible"])
	for _, l := range r.objects(t, "lines") {
		why, _ := l.at("largest_infeasible_verdict").(string)
		l["largest_infeasible_verdict"] = strings.TrimPrefix(why, "oom-")
		for _, line := range tables[0].lines {
			if line["strategy"] != l.at("strategy") || line["ladder"] != l.at("ladder") {
				continue
			}
			if strings.HasPrefix(line["fragmentation"], "> ") { // of a line that completes within no budget
				l["price_of_fragmentation"] = line["fragmentation"]
			}
			hold(t, tables[0], line, l, map[string]string{
				"strategy": "text:strategy", "ladder": "text:ladder", "feasible": "ratio:smallest_feasible_ratio",
				"overhead": "fixed3:overhead_at_smallest", "infeasible": "ratio:largest_infeasible_ratio",
				"because": "text:largest_infeasible_verdict",
				"at 0.5":  "fixed3:overhead_at_half", "fragmentation": "ratio:price_of_fragmentation",
				"not moving": "ratio:price_of_not_moving",
			})
		}
	}
}

func TestTableOfDiffMatchesItsJSON(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	succeed(t, "compare", "--strategies", "bfc", "--json", a, tabled(t))
	succeed(t, "compare", "--strategies", "bfc", "--json", b, write(t, "t.trace", small))
	tables, r := withJSON(t, "diff", a, b, "--all")
	changes := r.objects(t, "pairs")[0].objects(t, "changes")
	require.Len(t, tables[0].lines, len(changes))
	forms := map[any]string{"bytes": "bytes", "ns": "ns", "number": "count"}
	for i, c := range changes {
		line := tables[0].lines[i]
		require.Equal(t, c.at("figure"), line["figure"])
		if x, ok := c.at("a").(float64); ok && x == float64(int64(x)) && c.at("measured") != true {
			require.Equal(t, c.show(t, forms[c.at("unit")]+":a"), line["A"], line)
			require.Equal(t, c.show(t, forms[c.at("unit")]+":b"), line["B"], line)
		}
		relative := "—"
		if x, ok := c.at("relative").(float64); ok {
			relative = fmt.Sprintf("%+.2f %%", 100*x)
		}
		require.Equal(t, relative, line["relative"], line)
	}
}

func TestNameValueTablesMatchTheirJSON(t *testing.T) {
	tables, r := withJSON(t, "replay", "--strategy", "bfc:growth", tabled(t))
	values := map[string]string{}
	for _, p := range tables[0].pairs {
		values[p[0]] = p[1]
	}
	for name, what := range map[string]string{
		"lower bound": "bytes:lower_bound_bytes", "peak requested": "bytes:peak_requested_bytes",
		"peak allocated": "bytes:peak_allocated_bytes",
		"peak active":    "bytes:peak_active_bytes", "peak reserved": "bytes:peak_reserved_bytes",
		"at the end: requested": "bytes:final_requested_bytes",
		"at the end: allocated": "bytes:final_allocated_bytes", "at the end: active": "bytes:final_active_bytes",
		"at the end: reserved": "bytes:final_reserved_bytes", "reservation waste": "percent:reservation_waste",
		"internal fragmentation at peak":          "percent:internal_fragmentation_at_peak",
		"external fragmentation, peak":            "percent:external_fragmentation_peak",
		"external fragmentation at peak reserved": "percent:external_fragmentation_at_peak_reserved",
		"headroom at peak reserved":               "bytes:headroom_bytes/at_peak_reserved",
		"headroom at the end":                     "bytes:headroom_bytes/final",
		"metadata on the host":                    "bytes:metadata_bytes", "events": "count:events",
		"granted":       "count:alloc_count",
		"freed":         "count:free_count",
		"out of memory": "count:oom_count", "refused sizes": "count:refused_count", "zero bytes refused": "count:null_count",
	} {
		require.Equal(t, r.show(t, what), values[name], name)
	}
	require.Equal(t, r.show(t, "count:device_calls")+" in "+r.show(t, "ns:device_time_ns"), values["device calls"])
	require.Equal(t, r.show(t, "fixed1:ns_per_op")+" ns", values["time per operation"])

	tables, list := withJSON(t, "trace", "info", tabled(t))
	info := list.objects(t, "list")[0]
	clear(values)
	for _, p := range tables[0].pairs {
		values[p[0]] = p[1]
	}
	require.Equal(t, info.show(t, "bytes:peak_live_bytes")+" at event "+info.show(t, "count:peak_event"),
		values["lower bound"])
	require.Equal(t, info.show(t, "count:peak_live_count"), values["most live blocks"])
	require.Equal(t, info.show(t, "count:end_live_count")+" block, "+info.show(t, "bytes:end_live_bytes"),
		values["live at the end"])
	require.Equal(t, info.show(t, "bytes:sizes/total_bytes"), values["requested bytes in total"])
	require.Contains(t, values["events"], info.show(t, "count:events")+": ")
}

func TestTableOfDevicesMatchesItsJSON(t *testing.T) {
	tables, r := withJSON(t, "devices")
	table := tables[len(tables)-1] // behind that of the GPUs of this machine
	for i, c := range r.objects(t, "cards") {
		c["device"] = "sim:" + c.show(t, "text:name")
		c["bandwidth_gb"] = c.at("bandwidth_bytes_per_second").(float64) / 1e9
		c["speed"] = c.show(t, "fixed0:bandwidth_gb") + " GB/s"
		c["link_gb"] = c.at("link_bytes_per_second").(float64) / 1e9
		c["link"] = c.show(t, "fixed1:link_gb") + " GB/s"
		hold(t, table, table.lines[i], c, map[string]string{
			"--device": "text:device", "card": "text:model", "memory": "bytes:memory_bytes", "bandwidth": "text:speed",
			"link to host": "text:link",
		})
	}
}

func TestTablesOfTopMatchItsJSON(t *testing.T) {
	tables, r := withJSON(t, "top", "../examples/oom/chat.pickle.gz")
	for i, list := range []string{"categories", "holders"} {
		table := tables[i]
		held := map[any]object{}
		for _, h := range r.objects(t, "peak/"+list) {
			h["share"] = h.at("bytes").(float64) / r.at("peak/live_bytes").(float64)
			held[h.at("name")] = h
		}
		for _, h := range r.objects(t, "failure/"+list) {
			held[h.at("name")]["failure"] = h.at("bytes")
		}
		columns := map[string]string{
			"bytes": "bytes:bytes", "share": "percent:share", "blocks": "count:block_count", "at failure": "bytes:failure",
			"category": "text:category",
		}
		if list == "holders" {
			columns["call site"] = "text:name"
		}
		require.Len(t, table.lines, len(held))
		for _, line := range table.lines {
			o := held[line[table.headings[len(table.headings)-1]]]
			require.NotNil(t, o, line)
			if o.at("failure") == nil { // holds nothing then
				o["failure"] = 0.0
			}
			hold(t, table, line, o, columns)
		}
	}
}
