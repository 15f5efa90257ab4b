package slab

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecordsHaveTheBytesThatAreReported holds the constants of the account of host memory
// to the types.
func TestRecordsHaveTheBytesThatAreReported(t *testing.T) {
	for of, want := range map[reflect.Type]int{
		reflect.TypeFor[row]():   rowBytes,
		reflect.TypeFor[grade](): gradeBytes,
	} {
		require.Equal(t, want, int(of.Size()), of)
	}
}
