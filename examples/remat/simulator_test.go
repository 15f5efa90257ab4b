package remat

import (
	"bytes"
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
)

// copied reads a log as the simulator does, which keeps a copy of whatever is written.
func copied(t *testing.T, name string) *remat.Schedule {
	t.Helper()
	s, err := remat.Read(bytes.NewReader(bytes.ReplaceAll(text(t, name), []byte(`,"RECOMPUTABLE":false`), nil)), name, nil)
	require.NoError(t, err)
	return s
}

func TestRunsMatchTheSimulator(t *testing.T) {
	f, err := os.Open("testdata/simulator.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+48)
	for _, name := range programs {
		s := copied(t, name)
		most := peak(t, s)
		for _, row := range rows[1:] {
			if row[0] != name {
				continue
			}
			percent, err := strconv.ParseUint(row[2], 10, 64)
			require.NoError(t, err)
			res, err := remat.Run(s, &remat.Counter{Budget: most * device.Size(percent) / 100},
				remat.Config{Heuristic: row[1], Liveness: "eager", Limit: s.Cost})
			require.NoError(t, err)
			require.Equal(t, row[3:], []string{string(res.Verdict), strconv.FormatInt(res.Clock, 10),
				strconv.FormatUint(uint64(res.Peak), 10)}, "%v", row)
		}
	}
}
