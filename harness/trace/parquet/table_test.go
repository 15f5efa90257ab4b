package parquet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/budget"
)

// object is a group of fields that may be absent as a whole.
type object struct {
	Must  string   `json:"must"`
	May   *int     `json:"may"`
	Share *float64 `json:"share"`
}

// inner is embedded, and its name is hidden.
type Inner struct {
	Name  string      `json:"name"`
	Bytes device.Size `json:"bytes"`
}

// result has a column of every kind.
type result struct {
	Inner
	Name    string          `json:"name"`
	Signed  int             `json:"signed"`
	Small   uint8           `json:"small"`
	Ns      float64         `json:"ns_per_op"`
	Ok      bool            `json:"ok"`
	Least   *device.Size    `json:"least_bytes"`
	Hash    workload.Hash   `json:"hash"`
	Config  json.RawMessage `json:"config"`
	Rounds  []float64       `json:"rounds"`
	Object  *object         `json:"object"`
	Nested  object          `json:"nested"`
	Whole   object          `json:"whole" flat:"text"`
	Omitted string          `json:"-"`
}

func anyObject(rng *rand.Rand) object {
	o := object{Must: texts[rng.IntN(len(texts))]}
	if rng.IntN(2) == 0 {
		o.May = new(rng.IntN(100) - 50)
	}
	if rng.IntN(2) == 0 {
		o.Share = new(rng.NormFloat64())
	}
	return o
}

// anyResults draws rows. Empty lists are nil, which is how null is read.
func anyResults(seed uint64) []result {
	rng := rand.New(rand.NewPCG(seed, 0))
	rows := make([]result, rng.IntN(50))
	if seed%30 == 0 {
		rows = make([]result, 10_000) // several pages
	}
	for i := range rows {
		r := &rows[i]
		n := rng.Uint64() >> rng.IntN(64)
		*r = result{Inner: Inner{Bytes: device.Size(n)}, Signed: int(n) - int(n*3), Small: uint8(n), Ns: rng.NormFloat64(),
			Ok: n%3 == 0, Nested: anyObject(rng), Whole: anyObject(rng), Hash: workload.Hash(n)}
		if i%100 < 20 {
			r.Name = texts[rng.IntN(len(texts))]
		}
		if seed%3 > 0 && rng.IntN(2) == 0 {
			r.Least, r.Config = new(device.Size(n*7)), json.RawMessage(fmt.Sprintf(`{"a":[%d,null,"x"]}`, n%5))
		}
		for range rng.IntN(3) {
			r.Rounds = append(r.Rounds, rng.ExpFloat64())
		}
		if rng.IntN(2) == 0 {
			r.Object = new(anyObject(rng))
		}
	}
	return rows
}

func table[R any](t testing.TB, rows []R, metadata ...trace.Pair) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, parquet.WriteTable(&b, flat.Of(rows), metadata...))
	return b.Bytes()
}

func readTable[R any](data []byte, memory *budget.Budget) ([]R, map[string]string, error) {
	return parquet.ReadTable[R](bytes.NewReader(data), int64(len(data)), "x.parquet", memory, nil)
}

func TestTablesAreReadAsWritten(t *testing.T) {
	for seed := range uint64(60) {
		rows := anyResults(seed)
		got, metadata, err := readTable[result](table(t, rows, trace.Pair{Key: "seed", Value: "7"}), budget.New(0))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, rows, got, "seed %d", seed)
		require.Equal(t, "7", metadata["seed"])
		require.Contains(t, metadata["vramyard.provenance"], `"version"`)
	}
}

// TestColumnsAreFoundByName reads a table with columns in another order, more of them, and others
// that may be null but are not.
func TestColumnsAreFoundByName(t *testing.T) {
	type wide struct {
		Group struct {
			A, B int64
		}
		Ok    *bool   `parquet:"ok"`
		Extra []int64 `parquet:"extra"`
		Bytes *uint64 `parquet:"bytes"`
		Name  string  `parquet:"name,plain"`
	}
	type narrow struct {
		Inner
		Ok     bool    `json:"ok"`
		Later  *int    `json:"later"`
		Object *object `json:"object"`
	}
	rows := []wide{
		{Ok: new(true), Bytes: new(uint64(1)), Name: "a", Extra: []int64{1, 2}},
		{Ok: new(false), Bytes: new(uint64(1) << 63)},
	}
	got, _, err := readTable[narrow](forged(t, rows), nil)
	require.NoError(t, err)
	require.Equal(t, []narrow{{Inner: Inner{"a", 1}, Ok: true}, {Inner: Inner{"", 1 << 63}}}, got)
}

// TestPyarrowTablesAreRead reads a table that pyarrow 26.0.1 has written, with pages of the older
// form.
func TestPyarrowTablesAreRead(t *testing.T) {
	data, err := os.ReadFile("testdata/pyarrow-table.parquet")
	require.NoError(t, err)
	type row struct {
		Text   string       `json:"text"`
		Bytes  *device.Size `json:"bytes"`
		Signed int          `json:"signed"`
		Number *float64     `json:"number"`
		Ok     *bool        `json:"ok"`
	}
	got, _, err := readTable[row](data, nil)
	require.NoError(t, err)
	require.Len(t, got, 1000)
	for i, r := range got {
		want := row{
			Text: fmt.Sprint("t", i%7), Bytes: new(device.Size(i)), Signed: -i, Number: new(float64(i) / 4), Ok: new(i%3 == 0),
		}
		if i%5 == 0 {
			want.Bytes, want.Number, want.Ok = nil, nil, nil
		}
		require.Equal(t, want, r, "row %d", i)
	}
}

func TestTablesThatDoNotFitAreRefused(t *testing.T) {
	type name struct {
		Name string `json:"name"`
	}
	type small struct {
		Small uint8 `json:"small"`
	}
	type list struct {
		Rounds []float64 `json:"rounds"`
	}
	type hashed struct {
		Hash workload.Hash `json:"hash"`
	}
	type holder struct {
		Object *object `json:"object"`
	}
	type mayBeNull struct {
		Must  *string  `parquet:"object.must,plain"`
		May   *int64   `parquet:"object.may"`
		Share *float64 `parquet:"object.share"`
	}
	refused := func(want string, err error) {
		t.Helper()
		require.EqualError(t, err, "x.parquet: "+want)
	}
	read := func(data []byte) error { _, _, err := readTable[name](data, nil); return err }
	refused("no Parquet file", read([]byte("name,x\n1,2 and so on\n")))
	refused("the Parquet data is truncated", read([]byte("PAR1")))
	refused("column name is missing", read(forged(t, []like{{Kind: "alloc"}})))
	refused("column name is INT(64,true): want STRING", read(forged(t, []struct {
		Name int64 `parquet:"name"`
	}{{1}})))
	refused("column name is repeated STRING: want STRING", read(forged(t, []struct {
		Name []string `parquet:"name"`
	}{})))
	refused("column name is a group: want STRING", read(forged(t, []struct {
		Name struct{ A string } `parquet:"name"`
	}{})))
	refused("column name: row 1: null: want a value", read(forged(t, []struct {
		Name *string `parquet:"name,plain"`
	}{{new("x")}, {}})))
	_, _, err := readTable[small](forged(t, []struct {
		Small uint64 `parquet:"small"`
	}{{255}, {256}}), nil)
	refused("column small: row 1: 256: want a value of uint8", err)
	_, _, err = readTable[list](forged(t, []struct {
		Rounds string `parquet:"rounds,plain"`
	}{{""}, {"[1,"}}), nil)
	refused(`column rounds: row 1: "[1,": unexpected end of JSON input`, err)
	_, _, err = readTable[hashed](forged(t, []struct {
		Hash string `parquet:"hash,plain"`
	}{{"xyz"}}), nil)
	require.ErrorContains(t, err, `x.parquet: column hash: row 0: "xyz": `)
	_, _, err = readTable[holder](forged(t, []mayBeNull{{}, {nil, new(int64(1)), nil}}), nil)
	refused("column object.must: row 1: null: want a value", err)
	_, _, err = readTable[holder](forged(t, []struct {
		May int64 `parquet:"object.may"`
	}{{1}}), nil)
	refused("column object.must: row 0: null: want a value", err)

	var packed bytes.Buffer
	w := parquetgo.NewGenericWriter[struct {
		Name string `parquet:"name"`
	}](&packed, parquetgo.Compression(&parquetgo.Snappy))
	require.NoError(t, w.Close())
	require.NoError(t, read(packed.Bytes()), "a table without rows has no pages")
	packed.Reset()
	w.Reset(&packed)
	_, err = w.Write(make([]struct {
		Name string `parquet:"name"`
	}, 1))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	refused("column name: compressed with SNAPPY: want zstd", read(packed.Bytes()))

	require.EqualError(t, parquet.WriteTable(&packed, flat.Of([]name{}), trace.Pair{Key: "k", Value: "\xff"}),
		`metadata "k"="\xff": want UTF-8`)
}

// TestTablesAreBoundedInMemory reads tables that are small as files and large in memory.
func TestTablesAreBoundedInMemory(t *testing.T) {
	type lists struct {
		Text  string  `json:"text"`
		Lists [][]int `json:"lists"`
	}
	deep := make([]lists, 200)
	for i := range deep {
		deep[i].Lists = make([][]int, 2000)
	}
	shared := make([]lists, 20_000)
	for i := range shared {
		shared[i].Text = strings.Repeat("x", 1<<13)
	}
	for want, data := range map[string][]byte{
		"x.parquet: column lists: row 103: takes more than 8MiB of memory": table(t, deep),
		"": table(t, shared), // one text
		"x.parquet: takes more than 8MiB of memory": table(t, make([]lists, 1<<20)),
	} {
		_, _, err := readTable[lists](data, budget.New(8<<20))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

// TestBrokenTablesAreErrors changes and cuts a table everywhere.
func TestBrokenTablesAreErrors(t *testing.T) {
	good := table(t, anyResults(1)[:20])
	tries, refused := 0, 0
	try := func(data []byte) {
		rows, _, err := readTable[result](data, budget.New(64<<20))
		tries++
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.Nil(t, rows)
			refused++
		}
	}
	damage(good, 9, try)
	require.Less(t, tries/2, refused, "the rest hurts statistics and columns' descriptions only")
}

// FuzzReadTable looks for tables that make the reader panic or exceed its memory.
func FuzzReadTable(f *testing.F) {
	f.Add(table(f, anyResults(1)[:5]))
	pages, err := os.ReadFile("testdata/pyarrow-table.parquet")
	require.NoError(f, err)
	f.Add(pages)
	f.Fuzz(func(t *testing.T, data []byte) {
		memory := budget.New(64 << 20)
		if rows, _, err := readTable[result](data, memory); err == nil {
			again, _, err := readTable[result](table(t, rows), nil)
			require.NoError(t, err)
			require.Len(t, again, len(rows))
		}
	})
}
