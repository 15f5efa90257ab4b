package stitch

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowsTakeWhatIsCountedForThem(t *testing.T) {
	require.EqualValues(t, 40, reflect.TypeFor[chunk]().Size())
	require.EqualValues(t, 112, reflect.TypeFor[region]().Size())
	require.EqualValues(t, 28, reflect.TypeFor[piece]().Size())
}
