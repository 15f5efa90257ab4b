package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/provenance"
)

func TestVersionNamesTheBuild(t *testing.T) {
	want := "vramyard version " + provenance.Read().String() + "\n"
	require.Equal(t, want, succeed(t, "version"))
	require.Equal(t, want, succeed(t, "--version"))
	var b provenance.Build
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "version", "--json", "-")), &b))
	require.Equal(t, provenance.Read(), b)
}
