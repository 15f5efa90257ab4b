package cell

import (
	"context"
	"errors"
)

// Store keeps objects by name. Names are relative paths of lower-case letters, digits, points,
// hyphens and slashes. It is safe for concurrent use, also by several processes and machines.
type Store interface {
	// Get returns an object. The error is [ErrMissing] if the name has no object.
	Get(ctx context.Context, name string) ([]byte, error)
	// Put writes an object, completely or not at all. The error is [ErrTaken] if the name has an
	// object already, which stays as it is: of several writers one succeeds.
	Put(ctx context.Context, name string, body []byte) error
	// Names returns the names of all objects that begin with a prefix, in lexical order.
	Names(ctx context.Context, prefix string) ([]string, error)
	// Remove removes an object. A missing object is no error.
	Remove(ctx context.Context, name string) error
	// String returns the location, as the user wrote it.
	String() string
}

// Errors of a [Store].
var (
	ErrMissing = errors.New("no such object")
	ErrTaken   = errors.New("an object of this name exists")
)
