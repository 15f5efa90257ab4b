package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// TestWorkAreasAreRead checks each policy, and that bad input names its place.
func TestWorkAreasAreRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "table")
	require.NoError(t, os.WriteFile(path, []byte("# card\n\nforward type=0 w=4,3 x=1,3:3,1 pad=0,0:0,0 512\n"), 0o600))
	for text, want := range map[string]string{
		"none": "bound=0", "bound=64MiB": "bound=67108864", "table=" + path: "table=" + path,
	} {
		w, err := ParseWorkAreas(text)
		require.NoError(t, err)
		require.Equal(t, want, w.String())
	}
	require.Equal(t, "bound=1024", WorkAreas{Bound: device.KiB}.String())
	for _, text := range []string{"", "some", "table=", "none=1"} {
		_, err := ParseWorkAreas(text)
		require.ErrorIs(t, err, errWorkAreas)
	}
	_, err := ParseWorkAreas("bound=x")
	require.Error(t, err)
	require.NoError(t, os.WriteFile(path, []byte("# card\nforward type=0\n"), 0o600))
	_, err = ParseWorkAreas("table=" + path)
	require.ErrorIs(t, err, errRow)
	require.ErrorContains(t, err, path+":2: \"forward type=0\"")
	require.NoError(t, os.WriteFile(path, []byte("forward type=0 "+strings.Repeat("9", 19)+"\n"), 0o600))
	_, err = ParseWorkAreas("table=" + path)
	require.ErrorIs(t, err, errRow, "a size that no card has")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<17), 0o600))
	_, err = ParseWorkAreas("table=" + path)
	require.ErrorContains(t, err, path+": bufio.Scanner: token too long")
	_, err = ParseWorkAreas("table=" + path + ".none")
	require.ErrorIs(t, err, os.ErrNotExist)
}
