package stitch

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowsTakeWhatIsCountedForThem(t *testing.T) {
	require.EqualValues(t, chunkBytes, reflect.TypeFor[chunk]().Size())
	require.EqualValues(t, regionBytes, reflect.TypeFor[region]().Size())
	require.EqualValues(t, pieceBytes, reflect.TypeFor[piece]().Size())
}
