package parquet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/harness/trace"
)

// version is the schema version written, and the only one accepted.
const version = "1"

// Keys of the metadata.
const (
	keyVersion      = "vramyard.version"
	keyName         = "vramyard.name"
	keyHeader       = "vramyard.header"
	keyEvents       = "vramyard.events"
	keySourceFormat = "vramyard.source_format"
	keySourceHash   = "vramyard.source_sha256"
)

// Key describes an entry of the metadata.
type Key struct {
	Name string // key in the file
	Doc  string // meaning
}

// Keys returns the metadata entries of a file.
func Keys() []Key {
	return []Key{
		{keyVersion, "version of the schema: " + version},
		{keyName, "short name of the trace"},
		{keyHeader, "other facts about the trace, its settings and the information that it lacks: a JSON array of objects " +
			"with `key` and `value`, in order"},
		{keyEvents, "events by kind: a JSON object"},
		{keySourceFormat, "format of the file from which the trace was read; absent without a file"},
		{keySourceHash, "SHA-256 of that file, decompressed; absent without a file"},
	}
}

// row is an event as it is stored. No field is ever null, because pandas converts integer columns
// with nulls to floating point.
type row struct {
	Kind   string `parquet:"kind,dict" doc:"kind of the event; bad-free-address is a bad-free of an address without an allocation"`
	ID     uint64 `parquet:"id,delta" doc:"name of the allocation; may be used again once it is freed"`
	Size   uint64 `parquet:"size_bytes,dict" doc:"bytes requested; of a bad-free, the distance from the start of the block"`
	Stream uint64 `parquet:"stream,dict" doc:"stream; 18446744073709551615 of a pool-begin means all of them"`
	Align  uint64 `parquet:"align_bytes,dict" doc:"alignment in bytes; 0 is any"`
	Hint   string `parquet:"hint,dict" doc:"end of the arena: low, high or empty"`
	Arg    uint64 `parquet:"arg,dict" doc:"number that belongs to the kind: pool, frontier, address, count; of an alloc, the frontier below which its memory must have been freed"`
	Time   int64  `parquet:"time_ns,delta" doc:"nanoseconds since the start of the trace, which never decrease; -1 is not known"`
	Tag    string `parquet:"tag,dict" doc:"text of the tag or mark, the options of a pool-begin, or empty"`
}

// originRow is the row of a trace with sites or threads.
type originRow struct {
	row
	Site   uint64 `parquet:"site,dict" doc:"hash of the call stack of a request, 0 if unknown; the column is absent if every site, thread and lifetime is unknown"`
	Thread uint64 `parquet:"thread,dict" doc:"number of the host thread of a request, 0 if unknown; absent with site"`
}

// lifeRow is the row of a trace with expected lifetimes.
type lifeRow struct {
	originRow
	Life string `parquet:"life,dict" doc:"scope at whose end the program expects a block to be freed: mark, step, run or empty; the column is absent if no request has one"`
}

// The columns, in order. Files of row lack those from colSite on, and files of originRow lack
// colLife.
const (
	colKind = iota
	colID
	colSize
	colStream
	colAlign
	colHint
	colArg
	colTime
	colTag
	colSite
	colThread
	colLife
	numColumns
)

// ColumnDoc describes a column.
type ColumnDoc struct {
	Name string // name in the file
	Type string // DuckDB's name of the type
	Doc  string // meaning
}

// Columns returns the columns of a file in order.
func Columns() []ColumnDoc {
	var list []ColumnDoc
	for _, f := range reflect.VisibleFields(reflect.TypeFor[lifeRow]()) {
		if !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			list = append(list, ColumnDoc{name, typeNames[f.Type.Kind()], f.Tag.Get("doc")})
		}
	}
	return list
}

// columnList caches the result of Columns.
var columnList = Columns()

var typeNames = map[reflect.Kind]string{reflect.String: "VARCHAR", reflect.Uint64: "UBIGINT", reflect.Int64: "BIGINT"}

// checkSchema returns the number of columns of a file. It fails if they are not the columns of a
// row, an originRow or a lifeRow.
func checkSchema(got []parquet.Field) (int, error) {
	want := parquet.SchemaOf(lifeRow{}).Fields()
	find := func(name string) int {
		return slices.IndexFunc(got, func(g parquet.Field) bool { return g.Name() == name })
	}
	if find(columnList[colLife].Name) < 0 {
		want = want[:colLife]
		if find(columnList[colSite].Name) < 0 && find(columnList[colThread].Name) < 0 {
			want = want[:colSite]
		}
	}
	for _, f := range want {
		i := find(f.Name())
		if i < 0 {
			return 0, fmt.Errorf("column %s is missing", f.Name())
		}
		if g := got[i]; !g.Leaf() || !g.Required() || !sameType(g.Type().String(), f.Type().String()) {
			return 0, fmt.Errorf("column %s is %s: want required %s", f.Name(), typeOf(g), f.Type())
		}
	}
	for i, g := range got {
		if i >= len(want) || g.Name() != want[i].Name() {
			return 0, fmt.Errorf("column %q is not known there: want the columns %s", g.Name(), namesOf(want))
		}
	}
	return len(want), nil
}

// sameType reports whether two column types hold the same values. A 64-bit integer without
// annotation is signed, and most programs omit the annotation.
func sameType(got, want string) bool {
	return got == want || got == "INT64" && want == "INT(64,true)"
}

func typeOf(f parquet.Field) string {
	switch {
	case !f.Leaf():
		return "a group"
	case f.Optional():
		return "optional " + f.Type().String()
	case f.Repeated():
		return "repeated " + f.Type().String()
	}
	return f.Type().String()
}

func namesOf(columns []parquet.Field) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name())
	}
	return strings.Join(names, ", ")
}

// badAddress is the stored kind of a BadFree of an address that has no allocation.
const badAddress = "bad-free-address"

// kindName returns the stored kind of an event.
func kindName(e *trace.Event) string {
	if e.Kind == trace.BadFree && e.Slot == trace.NoSlot {
		return badAddress
	}
	return e.Kind.String()
}

// kindNames are the stored kinds, by number. The last is a BadFree of an address.
var kindNames = func() (names []string) {
	for k := range trace.Kinds {
		names = append(names, k.String())
	}
	return append(names, badAddress)
}()

// kindNumbers are the kinds by their names.
var kindNumbers = numbersOf(kindNames)

// addressKind is the number of a BadFree of an address.
var addressKind = kindNumbers[badAddress]

// hintNames are the names of the hints, by number.
var hintNames = []string{alloc.HintNone: "", alloc.HintLow: "low", alloc.HintHigh: "high"}

// lifeNames are the names of the lifetimes, by number.
var lifeNames = []string{"", alloc.LifeMark.String(), alloc.LifeStep.String(), alloc.LifeRun.String()}

// lifeNumbers are the lifetimes by their names.
var lifeNumbers = numbersOf(lifeNames)

// hintNumbers are the hints by their names.
var hintNumbers = numbersOf(hintNames)

// numbersOf returns the index of each name.
func numbersOf(names []string) map[string]uint32 {
	numbers := map[string]uint32{}
	for n, name := range names {
		numbers[name] = uint32(n)
	}
	return numbers
}
