package flat_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace/flat"
)

// share is a number that is stored as another.
type share int

// Float returns the number.
func (s share) Float() float64 { return float64(s) / 10 }

// tenths is a share that can be read.
type tenths int

func (s tenths) Float() float64 { return float64(s) / 10 }

func (s *tenths) UnmarshalJSON(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	*s = tenths(x * 10)
	return err
}

type machine struct {
	CPU string `json:"cpu"`
}

type base struct {
	Name   string          `json:"name"`
	Config json.RawMessage `json:"config"`
	Bytes  device.Size     `json:"bytes"`
	Least  *device.Size    `json:"least_bytes"`
	hidden int
}

type row struct {
	base
	Name    string         `json:"name"`
	Share   share          `json:"share"`
	Offset  int            `json:"offset,omitempty"`
	Rounds  []float64      `json:"rounds"`
	Machine machine        `json:"machine"`
	Maybe   *machine       `json:"maybe"`
	Params  map[string]int `json:"parameters"`
	Whole   machine        `json:"whole" flat:"text"`
	Left    string         `json:"left" flat:"-"`
	Secret  string         `json:"-"`
	Ok      bool           `json:"ok"`
}

func TestColumnsFollowTheJSON(t *testing.T) {
	least := device.Size(7)
	rows := []row{
		{base: base{Name: "inner", Config: json.RawMessage(`{"a":1}`), Bytes: 1 << 40, Least: &least, hidden: 1},
			Name: "outer, here", Share: 5, Offset: -3,
			Rounds: []float64{1.5, 2}, Machine: machine{"x"}, Maybe: &machine{"y"}, Params: map[string]int{"k": 1}, Ok: true},
		{},
	}
	table := flat.Of(rows)
	var b strings.Builder
	require.NoError(t, table.WriteCSV(&b))
	require.Equal(t, `config,bytes,least_bytes,name,share,offset,rounds,machine.cpu,maybe.cpu,parameters,whole,ok
"{""a"":1}",1099511627776,7,"outer, here",0.5,-3,"[1.5,2]",x,y,"{""k"":1}","{""cpu"":""""}",true
,0,,,0,0,,,,,"{""cpu"":""""}",false
`, b.String())
	kinds := map[string]flat.Column{}
	for _, c := range table.Columns() {
		kinds[c.Name] = c
	}
	require.Equal(t, flat.Int, kinds["bytes"].Kind)
	require.False(t, kinds["bytes"].Signed)
	require.True(t, kinds["offset"].Signed)
	require.True(t, kinds["least_bytes"].Optional)
	require.True(t, kinds["maybe.cpu"].Optional)
	require.Equal(t, flat.Float, kinds["share"].Kind)
	require.Equal(t, 2, table.Len())
}

// TestNoRowsHaveColumns tells an empty result from none.
func TestNoRowsHaveColumns(t *testing.T) {
	var b strings.Builder
	require.NoError(t, flat.Of([]machine(nil)).WriteCSV(&b))
	require.Equal(t, "cpu\n", b.String())
}

// TestNumbersAsAnArrayOfNumPy compares a file with the published layout: magic, version, length of
// the head, a literal of Python, and the rows.
func TestNumbersAsAnArrayOfNumPy(t *testing.T) {
	type point struct {
		At    int         `json:"at"`
		Bytes device.Size `json:"bytes"`
		Share float64     `json:"share"`
	}
	var out strings.Builder
	require.NoError(t, flat.Of([]point{{-1, 513, 0.5}}).WriteNPY(&out))
	const head = "{'descr': [('at', '<i8'), ('bytes', '<u8'), ('share', '<f8')], 'fortran_order': False, 'shape': (1,)}"
	require.Equal(t, "\x93NUMPY\x01\x00\x76\x00"+head+strings.Repeat(" ", 128-10-len(head)-1)+"\n"+
		strings.Repeat("\xff", 8)+"\x01\x02\x00\x00\x00\x00\x00\x00"+"\x00\x00\x00\x00\x00\x00\xe0\x3f", out.String())

	out.Reset()
	require.NoError(t, flat.Of[point](nil).WriteNPY(&out))
	require.Len(t, out.String(), 128)
	require.EqualError(t, flat.Of([]machine{{}}).WriteNPY(&out), "column cpu: want numbers only")
	require.EqualError(t, flat.Of([]struct {
		Least *device.Size `json:"least"`
	}{{}}).WriteNPY(&out), "column least: want numbers only")
}

// TestRowsAreFilledWithValues sets the values of a table in empty rows. The number that is stored
// as another cannot be set.
func TestRowsAreFilledWithValues(t *testing.T) {
	least := device.Size(7)
	type filled struct {
		Bytes  device.Size     `json:"bytes"`
		Least  *device.Size    `json:"least_bytes"`
		Config json.RawMessage `json:"config"`
		Maybe  *machine        `json:"maybe"`
		Offset int8            `json:"offset"`
		Share  float32         `json:"share"`
	}
	rows := []filled{{1, &least, json.RawMessage(`{"a":1}`), &machine{"x"}, -3, 0.5}, {}}
	from, got := flat.Of(rows), make([]filled, 2)
	to := flat.Of(got)
	for row := range rows {
		for i := range from.Columns() {
			v, err := from.Value(row, i)
			require.NoError(t, err)
			require.NoError(t, to.Set(row, i, v))
		}
	}
	require.Equal(t, rows, got)

	require.EqualError(t, to.Set(1, 0, nil), "null: want a value")
	require.EqualError(t, to.Set(0, 3, nil), "null: want a value", "the object is there")
	require.EqualError(t, to.Set(0, 0, int64(1)), "1: want a value of device.Size")
	require.EqualError(t, to.Set(0, 4, int64(-129)), "-129: want a value of int8")
	require.EqualError(t, to.Set(0, 5, 1e300), "1e+300: want a value of float32")
	require.EqualError(t, to.Set(0, 2, "{"), `"{": unexpected end of JSON input`)
	shares := flat.Of([]struct {
		Share share `json:"share"`
	}{{}})
	require.EqualError(t, shares.Set(0, 0, 0.5), "0.5: want a value of flat_test.share")
	read := []struct {
		Tenths tenths `json:"tenths"`
	}{{}}
	require.NoError(t, flat.Of(read).Set(0, 0, 0.5))
	require.EqualValues(t, 5, read[0].Tenths)
}
