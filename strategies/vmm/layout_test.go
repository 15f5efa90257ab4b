package vmm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesMatchTheTypeSizes(t *testing.T) {
	require.EqualValues(t, 56, reflect.TypeFor[chunk]().Size())
}
