package parquet

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/flat"
)

// keyProvenance is the key of the program in the metadata of a table.
const keyProvenance = "vramyard.provenance"

// WriteTable writes a table of results. The columns have the names, order and types of the table;
// an absent value is null. Unsigned integers are UINT64. It fails if w does, and for a text that is
// not UTF-8. The metadata have the program under "vramyard.provenance", and the given entries.
// [ReadTable] is the inverse.
func WriteTable(w io.Writer, t *flat.Table, metadata ...trace.Pair) error {
	columns := t.Columns()
	options := []parquet.WriterOption{
		tableSchema(columns), parquet.Compression(&parquet.Zstd),
		parquet.CreatedBy("vramyard", provenance.Version, "parquet-go"),
	}
	for _, c := range columns {
		if c.Kind == flat.Text { // two long texts would exceed the head of a page that readers accept
			options = append(options, parquet.SkipPageBounds(c.Name), parquet.SkipPageStatistics(c.Name))
		}
	}
	out := parquet.NewWriter(w, options...)
	build, err := json.Marshal(provenance.Read())
	if err != nil {
		return err
	}
	out.SetKeyValueMetadata(keyProvenance, string(build))
	for _, p := range metadata {
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			return fmt.Errorf("metadata %+q=%+q: want UTF-8", p.Key, p.Value)
		}
		out.SetKeyValueMetadata(p.Key, p.Value)
	}
	row := make(parquet.Row, len(columns))
	for r := range t.Len() {
		for i := range columns {
			v, err := t.Value(r, i)
			if err == nil {
				row[i], err = cellOf(v, i, columns[i].Optional)
			}
			if err != nil {
				return fmt.Errorf("row %d, %s: %w", r, columns[i].Name, err)
			}
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
	return out.Close()
}

func cellOf(v any, column int, optional bool) (parquet.Value, error) {
	if text, ok := v.(string); ok && !utf8.ValidString(text) {
		return parquet.Value{}, fmt.Errorf("%+.40q: want UTF-8", text)
	}
	present := 0 // definition level
	if optional && v != nil {
		present = 1
	}
	return parquet.ValueOf(v).Level(0, present, column), nil
}

// tableSchema returns the schema of a table. It is derived from a struct because a parquet.Group
// sorts its fields by name.
func tableSchema(columns []flat.Column) *parquet.Schema {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		tag := c.Name
		if c.Optional {
			tag += ",optional"
		}
		if c.Kind == flat.Text {
			tag += ",dict"
		}
		fields[i] = reflect.StructField{
			Name: fmt.Sprintf("C%d", i), Type: goTypes[c.Kind], Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", tag)),
		}
		if c.Kind == flat.Int && c.Signed {
			fields[i].Type = reflect.TypeFor[int64]()
		}
	}
	return parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
}

// goTypes are the Go types of the values, by kind.
var goTypes = [...]reflect.Type{
	flat.Text: reflect.TypeFor[string](), flat.Bool: reflect.TypeFor[bool](),
	flat.Int: reflect.TypeFor[uint64](), flat.Float: reflect.TypeFor[float64](),
}
