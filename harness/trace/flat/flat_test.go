package flat_test

import (
	"encoding/json"
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
