package pluggable_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/cmd/libvramyard/pluggable"
)

// TestPageDocumentsEverySettingAndFigure holds docs/pytorch.md to the variables and the fields
// there are.
func TestPageDocumentsEverySettingAndFigure(t *testing.T) {
	text, err := os.ReadFile("../../../docs/pytorch.md")
	require.NoError(t, err)
	page := string(text)
	for _, name := range []string{
		pluggable.EnvStrategy, pluggable.EnvConfig, pluggable.EnvDevice, pluggable.EnvTrace, pluggable.EnvEvents,
		pluggable.EnvStats, pluggable.EnvPoison, pluggable.EnvPanic,
	} {
		require.Contains(t, page, "| `"+name+"` |")
	}
	require.Contains(t, page, pluggable.Schema)
	for _, of := range []reflect.Type{
		reflect.TypeFor[pluggable.Stats](), reflect.TypeFor[pluggable.DeviceStats](),
		reflect.TypeFor[pluggable.PoisonStats](),
	} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "schema" {
				require.Contains(t, page, "`"+name+"`")
			}
		}
	}
}
