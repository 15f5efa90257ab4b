package vmm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

func TestBytesAreThoseOfTheTypes(t *testing.T) {
	require.EqualValues(t, rowBytes, reflect.TypeFor[chunk]().Size())
	require.EqualValues(t, spanBytes, reflect.TypeFor[span]().Size())
	require.EqualValues(t, handleBytes, reflect.TypeFor[device.Handle]().Size())
}
