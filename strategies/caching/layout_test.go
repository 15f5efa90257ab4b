package caching

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesAreThoseOfTheTypes(t *testing.T) {
	require.EqualValues(t, rowBytes, reflect.TypeFor[block]().Size())
	require.EqualValues(t, markBytes, reflect.TypeFor[mark]().Size())
	require.EqualValues(t, usesBytes, reflect.TypeFor[uses]().Size())
	require.LessOrEqual(t, int(reflect.TypeFor[shelf]().Size()), shelfBytes)
}
