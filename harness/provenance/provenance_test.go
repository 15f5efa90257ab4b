package provenance

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildIsRead(t *testing.T) {
	t.Parallel()
	settings := []debug.BuildSetting{
		{Key: "-tags", Value: "nocuda,nvml"}, {Key: "vcs.revision", Value: "12ab"}, {Key: "vcs.modified", Value: "true"},
	}
	here := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for want, info := range map[string]debug.BuildInfo{
		Version + ", " + here: {Main: debug.Module{Path: module}},
		Version + ", commit 12ab (modified), " + here + ", tags nocuda nvml": {Settings: settings},
		Version + ", in example.org/x v1, commit 12ab (modified), " + here + ", tags nocuda nvml": {
			Main: debug.Module{Path: "example.org/x", Version: "v1"}, Settings: settings,
		},
	} {
		require.Equal(t, want, of(&info).String())
	}
	require.Equal(t, Version, Read().Version)
	require.NotNil(t, Read().Tags, "a list in JSON")
}
