package vmm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesAreThoseOfTheTypes(t *testing.T) {
	require.EqualValues(t, rowBytes, reflect.TypeFor[chunk]().Size())
}
