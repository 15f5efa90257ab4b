package freetree

import (
	"reflect"
	"testing"
)

func TestNodeBytesAreThoseOfTheTypes(t *testing.T) {
	if n := reflect.TypeFor[leaf]().Size(); n != leafBytes {
		t.Errorf("a leaf takes %d bytes, leafBytes says %d", n, leafBytes)
	}
	if n := reflect.TypeFor[inner]().Size(); n != innerBytes {
		t.Errorf("an inner node takes %d bytes, innerBytes says %d", n, innerBytes)
	}
}
