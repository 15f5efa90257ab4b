package vmm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesAreThoseOfTheTypes(t *testing.T) {
	require.EqualValues(t, 56, reflect.TypeFor[chunk]().Size())
}
