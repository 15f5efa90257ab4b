package caching

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesMatchTheTypeSizes(t *testing.T) {
	require.EqualValues(t, 40, reflect.TypeFor[block]().Size())
	require.EqualValues(t, 16, reflect.TypeFor[mark]().Size())
	require.EqualValues(t, 56, reflect.TypeFor[uses]().Size())
	require.LessOrEqual(t, int(reflect.TypeFor[shelf]().Size()), shelfBytes)
}
