package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/bench"
)

// table is a generated part of the page.
type table struct {
	name  string // of its marks
	write func(*figures) string
}

func tables() []table {
	return []table{
		{"answer", (*figures).answer}, {"machine", (*figures).machineTable}, {"w1", (*figures).w1Tables}, {"mixes", (*figures).mixTables},
		{"peers", (*figures).peersTable}, {"locked", (*figures).lockedTable}, {"latency", (*figures).latencyTable},
		{"floor", (*figures).floorTable}, {"places", (*figures).placesTable}, {"files", (*figures).filesTable},
	}
}

// none stands where there is no figure.
const none = "—"

// markdown returns a table. The first line is the head; its columns but the first are numbers
// unless they are marked by a leading space.
func markdown(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	marks := make([]string, len(head))
	names := make([]string, len(head))
	for i, h := range head {
		names[i] = strings.TrimSpace(h)
		if marks[i] = "--:"; i == 0 || strings.HasPrefix(h, " ") {
			marks[i] = "---"
		}
	}
	line(names)
	line(marks)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// exponent returns a power of ten as 1e3.
func exponent(n int) string { return "1e" + strconv.Itoa(int(math.Round(math.Log10(float64(n))))) }

// fixed formats x with a fixed number of decimals.
func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// nanos returns nanoseconds with three digits or more.
func nanos(x float64) string {
	if x < 100 {
		return fixed(x, 1)
	}
	return fixed(x, 0)
}

func rawLink(name string) string {
	return "[" + name + "](../benchmarks/results/" + name + ")"
}

// machineTable lists the sources of the raw files, one row for each commit and machine.
func (f *figures) machineTable() string {
	var rows [][]string
	add := func(file string, h header) {
		m := h.Machine
		about := []string{
			"`" + h.Commit + "`", m.Go + " " + m.OS + "/" + m.Arch, fmt.Sprintf("%s, %d CPUs", m.CPU, m.CPUs),
			strings.Join(h.Caches, ", "),
		}
		for _, r := range rows {
			if slices.Equal(r[1:], about) {
				r[0] += ", " + rawLink(file)
				return
			}
		}
		rows = append(rows, append([]string{rawLink(file)}, about...))
	}
	for i, c := range f.comparisons {
		add(c.file(), f.times[i].header)
	}
	add("locked.json", f.locked.header)
	add("latency.json", f.latency.header)
	add("lines.json", f.lines.header)
	return markdown([]string{"raw files", " commit", " Go", " machine", " caches"}, rows)
}

// w1Tables has a table for each figure, strategies down, live blocks across.
func (f *figures) w1Tables() string {
	c, t := f.comparisons[0], &f.times[0]
	head := []string{c.title()}
	for _, r := range t.Reports {
		head = append(head, exponent(r.Runs[0].Params.Live))
	}
	grid := func(cell func(*bench.Run) string) string {
		var rows [][]string
		for _, e := range c.entries {
			row := []string{e.name}
			for _, r := range t.Reports {
				text := none
				if run := t.run(e.name, r.Runs[0].Params.Live); run != nil {
					text = cell(run)
				}
				row = append(row, text)
			}
			rows = append(rows, row)
		}
		return markdown(head, rows)
	}
	return "Nanoseconds per pair, median (minimum); " + t.roundsText() + ":\n\n" +
		grid(func(r *bench.Run) string { return nanos(r.Median) + " (" + nanos(r.Min) + ")" }) +
		"\nMinimum / minimum of tlsf:\n\n" +
		grid(func(r *bench.Run) string { return fixed(r.Min/t.run("tlsf", r.Params.Live).Min, 2) }) +
		"\nAddress / peak live bytes; reserved / peak live bytes:\n\n" +
		grid(func(r *bench.Run) string { return fixed(r.AddressRatio, 3) + "; " + reserved(r) }) +
		"\nMetadata, bytes per live block:\n\n" +
		grid(func(r *bench.Run) string { return metadata(r.MetadataPerBlock) })
}

func (f *timesFile) roundsText() string {
	first, last := f.Reports[0], f.Reports[len(f.Reports)-1]
	text := strconv.Itoa(first.Rounds) + " rounds"
	if last.Rounds != first.Rounds {
		text += ", " + strconv.Itoa(last.Rounds) + " at " + exponent(last.Runs[0].Params.Live)
	}
	return text
}

// reserved returns the reserved ratio, which is meaningless for strategies that preallocate.
func reserved(r *bench.Run) string {
	if r.Preallocates {
		return "all"
	}
	return fixed(r.ReservedRatio, 3)
}

func metadata(perBlock *float64) string {
	if perBlock == nil {
		return none
	}
	return fixed(*perBlock, 1)
}

func (f *figures) mixTables() string {
	var b strings.Builder
	for i, c := range f.comparisons[1:] {
		t := &f.times[i+1]
		var rows [][]string
		for _, report := range t.Reports {
			for _, r := range report.Runs {
				rows = append(rows, []string{
					r.Strategy, exponent(r.Params.Live), nanos(r.Median), nanos(r.Min),
					fixed(r.Min/report.Runs[0].Min, 2), fixed(r.AddressRatio, 3), reserved(&r),
					metadata(r.MetadataPerBlock),
				})
			}
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.ToUpper(c.title()[:1]) + c.title()[1:] + "; " + t.roundsText() + ":\n\n")
		b.WriteString(markdown([]string{
			"strategy", "live", "ns per pair", "minimum", "/ tlsf", "address", "reserved", "metadata B",
		}, rows))
	}
	return b.String()
}

// peersTable has the minima of all allocators of the race on W1.
func (f *figures) peersTable() string {
	var names []string
	var lives []int
	cells := map[string]map[int]string{}
	for _, r := range f.peers.Runs {
		if r.Workload != "w1" {
			continue
		}
		name := r.name()
		if cells[name] == nil {
			cells[name] = map[int]string{}
			names = append(names, name)
		}
		cells[name][r.Live] = nanos(r.Min) + "; " + fixed(r.Address, 3)
		if !slices.Contains(lives, r.Live) {
			lives = append(lives, r.Live)
		}
	}
	head := []string{"W1, minimum ns; address"}
	for _, n := range lives {
		head = append(head, exponent(n))
	}
	var rows [][]string
	for _, n := range names {
		row := []string{n}
		for _, l := range lives {
			row = append(row, cells[n][l])
		}
		rows = append(rows, row)
	}
	return fmt.Sprintf("%d rounds at `%s`, [peers.json](../benchmarks/results/peers.json):\n\n", f.peers.Rounds,
		f.peers.Commit) +
		markdown(head, rows)
}

func (f *figures) lockedTable() string {
	var rows [][]string
	for _, r := range f.locked.Reports[0].Threads {
		rows = append(rows, []string{
			r.Strategy, strconv.Itoa(r.Threads), string(r.Locking), nanos(r.Median), nanos(r.Min), fixed(1e3/r.Median, 2),
			metadata(r.MetadataPerBlock),
		})
	}
	return markdown([]string{
		"strategy", "goroutines", " lock", "wall ns per pair", "minimum", "million pairs/s", "metadata B",
	}, rows)
}

func (f *figures) latencyTable() string {
	var rows [][]string
	for _, l := range f.latency.Loads {
		rows = append(rows, []string{device.Size(l.Bytes).String(), fixed(l.Serial.Min, 1), fixed(l.Parallel.Min, 2)})
	}
	return markdown([]string{"loads from", "one after the other, ns", "sixteen at once, ns"}, rows)
}

// floorTable compares times with what far lines take.
func (f *figures) floorTable() string {
	var rows [][]string
	for _, s := range f.lines.Runs {
		run, loop := f.times[0].run(s.Strategy, s.Live), f.times[0].loop(s.Live)
		if run == nil || loop == nil {
			continue
		}
		one, many := f.latency.of(float64(s.Metadata))
		took := run.Min - loop.Min
		rows = append(rows, []string{
			s.Strategy, exponent(s.Live), fixed(s.Instructions, 0), fixed(s.Lines, 1), fixed(s.Far, 1),
			fixed(float64(s.Metadata)/(1<<20), 2), nanos(s.Far * one), nanos(s.Far * many), nanos(took),
			distance(took, s.Far*one), distance(took, s.Far*many),
		})
	}
	return markdown([]string{
		"strategy", "live", "instructions", "lines", "far lines", "metadata MiB", "serial floor, ns", "parallel floor, ns",
		"time, ns", "/ serial", "/ parallel",
	}, rows)
}

func distance(a, b float64) string {
	if b == 0 {
		return none
	}
	return fixed(a/b, 2)
}

// The live blocks at which the page lists who touches far lines, and from what share of pairs on.
const (
	placesLive  = 1_000_000
	placesLeast = 0.1
)

// placesTable lists the functions that touch far lines. The raw file has their lines too, which
// move with every change of the source.
func (f *figures) placesTable() string {
	var rows [][]string
	for _, s := range f.lines.Runs {
		if s.Live != placesLive {
			continue
		}
		rest := 0.
		for _, p := range byFunction(s.Places) {
			if p.Far < placesLeast {
				rest += p.Far
				continue
			}
			rows = append(rows, []string{s.Strategy, "`" + p.Function + "`", fixed(p.Far, 2)})
		}
		rows = append(rows, []string{s.Strategy, "others", fixed(rest, 2)})
	}
	return markdown([]string{"strategy", " function", "far lines per pair"}, rows)
}

// byFunction adds up what the lines of each function touch, most first.
func byFunction(places []farFrom) (all []farFrom) {
	for _, p := range places {
		same := func(q farFrom) bool { return q.Function == p.Function }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Far += p.Far
		} else {
			all = append(all, farFrom{Function: p.Function, Far: p.Far})
		}
	}
	slices.SortStableFunc(all, func(a, b farFrom) int { return cmp.Compare(b.Far, a.Far) })
	return all
}
