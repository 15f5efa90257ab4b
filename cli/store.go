package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/store"
	"github.com/vramyard/vramyard/harness/replay"
)

// storeFlag is the flag --store, "" without one.
type storeFlag string

// addStore adds the flag to a command; keeps is the part of its help text that is specific to the
// command.
func addStore(c *cobra.Command, s *storeFlag, keeps string) {
	c.Flags().Var(s, "store", keeps+`, in this folder or S3 bucket, such as "cells" or `+
		`"s3://bucket/cells" (docs/sweep.md)`)
}

func (s *storeFlag) String() string { return string(*s) }

func (s *storeFlag) Type() string { return "string" }

// Set refuses the value of an unset shell variable.
func (s *storeFlag) Set(text string) error {
	if text == "" || text[0] == '-' {
		return errors.New("want a folder or s3://BUCKET/PREFIX")
	}
	*s = storeFlag(text)
	return nil
}

// open opens the store.
func (s storeFlag) open(cmd *cobra.Command) (cell.Store, error) {
	opened, err := store.Open(cmd.Context(), string(s))
	return opened, flagError("store", err)
}

// existing opens the store to read it.
func (s storeFlag) existing(cmd *cobra.Command) (cell.Store, error) {
	opened, err := store.Existing(cmd.Context(), string(s))
	return opened, flagError("store", err)
}

// cells returns the cells of the store for results on a device, or nil without the flag.
func (s storeFlag) cells(cmd *cobra.Command, on replay.Target) (*cell.Cells, error) {
	if s == "" {
		return nil, nil
	}
	if on.GPU != nil {
		return nil, flagError("store", errors.New("keeps results of simulated devices only, not with --device cuda"))
	}
	opened, err := s.open(cmd)
	if err != nil {
		return nil, err
	}
	return cell.Over(opened), nil
}
