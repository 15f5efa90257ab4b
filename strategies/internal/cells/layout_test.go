package cells

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecordsHaveTheBytesThatAreReported holds the constants of the account of host memory
// to the types.
func TestRecordsHaveTheBytesThatAreReported(t *testing.T) {
	for of, want := range map[reflect.Type]int{
		reflect.TypeFor[kind]():  kindBytes,
		reflect.TypeFor[stock](): stockBytes,
		reflect.TypeFor[slab]():  slabBytes,
		reflect.TypeFor[rack]():  rackBytes,
		reflect.TypeFor[depot](): depotBytes,
		reflect.TypeFor[back]():  backBytes,
		reflect.TypeFor[cell]():  cellBytes,
	} {
		require.Equal(t, want, int(of.Size()), of)
	}
}
