package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/provenance"
)

func newVersion() *cobra.Command {
	var files outputs
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, its commit and how it was built",
		Long: `Print the version of the program, the commit of its source, the version of Go, the platform and the build tags.
Every result in JSON has the same as the object "provenance".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.check(); err != nil {
				return err
			}
			b := provenance.Read()
			files.json(b)
			return files.write(cmd.OutOrStdout(), func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s version %s\n", cmd.Root().Name(), b)
				return err
			})
		},
	}
	files.add(c, "json", `also write it as JSON to this file, "-" for standard output instead of the line`)
	return c
}
