package cli

import (
	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/replay"
)

// addFreeAt adds the flag that says when a strategy without streams is told of a delayed free.
func addFreeAt(c *cobra.Command, value *string) {
	c.Flags().StringVar(value, "free-at", string(replay.AtCompleted),
		`when a strategy that knows no streams is told of a free that other streams delay: "requested" or "completed"`)
}

// parseFreeAt reads the value of the flag.
func parseFreeAt(value string) (replay.FreeAt, error) {
	at, err := replay.ParseFreeAt(value)
	return at, flagError("free-at", err)
}
