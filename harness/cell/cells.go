package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/vramyard/vramyard/harness/provenance"
)

// Schema names the form of a stored cell.
const Schema = "vramyard-cell/1"

// record is a stored cell, with its fields in alphabetical order as in all canonical JSON. The
// exact figures are compared between workers; the measured ones are of the worker that wrote it.
type record struct {
	Exact      json.RawMessage `json:"exact"`
	Key        json.RawMessage `json:"key"`
	Measured   json.RawMessage `json:"measured"`
	Provenance json.RawMessage `json:"provenance"`
	Schema     string          `json:"schema"`
}

// build returns the program in canonical JSON.
var build = sync.OnceValue(func() json.RawMessage {
	text, err := canonical(provenance.Read())
	if err != nil {
		panic(err) // it has texts only
	}
	return text
})

// Cells are the cells in a store, for one program. The zero value and nil have no store: every
// cell is computed. Methods are safe for concurrent use.
type Cells struct {
	store Store
}

// Over returns the cells in a store.
func Over(s Store) *Cells { return &Cells{store: s} }

// storeError is an error of a store.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// OfStore reports whether an error is of a store, or a [Disagreement], and not of a computation.
func OfStore(err error) bool {
	_, failed := errors.AsType[storeError](err)
	_, differs := errors.AsType[*Disagreement](err)
	return failed || differs
}

// Disagreement is a cell whose exact figures differ between two workers.
type Disagreement struct {
	Cell  string          // hash of the key
	Ours  json.RawMessage // exact figures that were computed here
	Other json.RawMessage // exact figures in the store
}

// Error names the cell and the first differing bytes.
func (d *Disagreement) Error() string {
	at := 0
	for at < len(d.Ours) && at < len(d.Other) && d.Ours[at] == d.Other[at] {
		at++
	}
	around := func(b []byte) string { return string(b[max(0, min(at, len(b))-40):min(len(b), at+40)]) }
	return fmt.Sprintf("cell %s: exact figures differ from those in the store: ...%s... and ...%s...",
		d.Cell, around(d.Ours), around(d.Other))
}

// Name returns the name of the object of a cell.
func Name(hash string) string { return "cells/" + hash[:2] + "/" + hash + ".json" }

// ConflictName returns the name of the object that keeps the exact figures of another worker that
// disagrees. Who is the hash of these figures.
func ConflictName(hash, who string) string { return Conflicts + hash + "." + who + ".json" }

// Conflicts is the prefix of the objects of [ConflictName].
const Conflicts = "conflicts/"

// Result is the result of a cell. E are its exact figures: equal on every machine. M are the
// measured ones, such as times.
type Result[E, M any] struct {
	Exact    E // encodes to JSON
	Measured M // encodes to JSON
}

// Recall returns the result of a cell: from the store, or else computed and then stored. An error
// of compute is returned and nothing is stored. If another worker has stored other exact figures in
// the meantime, the error is a [Disagreement]; the store keeps both.
func Recall[E, M any](ctx context.Context, c *Cells, k Key,
	compute func() (Result[E, M], error)) (Result[E, M], error) {
	if c == nil || c.store == nil {
		return compute()
	}
	key, err := k.Canonical()
	if err != nil {
		return Result[E, M]{}, err
	}
	hash := hashOf(key)
	if r, err := Read[E, M](ctx, c.store, hash); !errors.Is(err, ErrMissing) {
		return r, err
	}
	r, err := compute()
	if err != nil {
		return r, err
	}
	return r, write(context.WithoutCancel(ctx), c, key, r) // the work is done: keep it
}

// Read returns a stored cell. The error is [ErrMissing] if the store does not have it, or has a
// damaged one: the machine of a worker failed while it was written.
func Read[E, M any](ctx context.Context, s Store, hash string) (Result[E, M], error) {
	var result Result[E, M]
	r, err := read(ctx, s, hash)
	if err == nil {
		err = errors.Join(json.Unmarshal(r.Exact, &result.Exact), json.Unmarshal(r.Measured, &result.Measured))
		err = inStore(err, hash, s)
	}
	return result, err
}

func read(ctx context.Context, s Store, hash string) (*record, error) {
	text, err := s.Get(ctx, Name(hash))
	if err != nil {
		if !errors.Is(err, ErrMissing) {
			err = inStore(err, hash, s)
		}
		return nil, err
	}
	r := &record{}
	if json.Unmarshal(text, r) != nil || r.Schema == "" {
		return nil, ErrMissing
	}
	if r.Schema != Schema {
		return nil, storeError{fmt.Errorf("cell %s in %v: schema %.40q: want %q", hash, s, r.Schema, Schema)}
	}
	return r, nil
}

func write[E, M any](ctx context.Context, c *Cells, key []byte, r Result[E, M]) error {
	hash := hashOf(key)
	rec := record{Key: key, Schema: Schema, Provenance: build()}
	for into, v := range map[*json.RawMessage]any{&rec.Exact: r.Exact, &rec.Measured: r.Measured} {
		var err error
		if *into, err = canonical(v); err != nil {
			return fmt.Errorf("cell %s: %w", hash, err)
		}
	}
	text, err := encoded(rec)
	if err != nil {
		return err
	}
	if err = c.store.Put(ctx, Name(hash), text); errors.Is(err, ErrTaken) {
		return c.agree(ctx, hash, rec.Exact, text)
	}
	return inStore(err, hash, c.store)
}

// inStore returns an error of a store with the name of the cell.
func inStore(err error, hash string, s Store) error {
	if err == nil {
		return nil
	}
	return storeError{fmt.Errorf("cell %s in %v: %w", hash, s, err)}
}

// agree compares exact figures with the stored ones, which the first worker wrote. It replaces a
// damaged cell.
func (c *Cells) agree(ctx context.Context, hash string, exact, text []byte) error {
	other, err := read(ctx, c.store, hash)
	if errors.Is(err, ErrMissing) {
		err = c.store.Remove(ctx, Name(hash))
		if err == nil {
			err = c.store.Put(ctx, Name(hash), text)
		}
		if !errors.Is(err, ErrTaken) {
			return inStore(err, hash, c.store)
		}
		other, err = read(ctx, c.store, hash)
	}
	switch {
	case errors.Is(err, ErrMissing):
		return inStore(err, hash, c.store)
	case err != nil || bytes.Equal(other.Exact, exact):
		return err
	}
	who := hashOf(exact)
	if err := c.store.Put(ctx, ConflictName(hash, who), text); err != nil && !errors.Is(err, ErrTaken) {
		return inStore(err, hash, c.store)
	}
	return &Disagreement{Cell: hash, Ours: exact, Other: other.Exact}
}
