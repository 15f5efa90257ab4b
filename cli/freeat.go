package cli

import (
	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/replay"
)

// addFreeAt adds the flag for delayed frees of strategies without streams.
func addFreeAt(c *cobra.Command, value *string) {
	c.Flags().StringVar(value, "free-at", string(replay.AtCompleted),
		`moment at which a strategy without streams gets a free that other streams delay: "requested" or "completed"`)
}

// parseFreeAt reads the value of the flag.
func parseFreeAt(value string) (replay.FreeAt, error) {
	at, err := replay.ParseFreeAt(value)
	return at, flagError("free-at", err)
}
