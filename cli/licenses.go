package cli

import (
	_ "embed"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/internal/fileio"
)

// notices has the license of this program and the licenses of the modules linked into it. A test
// keeps it complete.
//
//go:embed notices.txt
var notices string

func newLicenses() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licenses of this program and of the modules linked into it",
		Long: `Print the license of this program and the notices that the licenses of its modules require. Ship them with
every copy of the program.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fileio.Write("-", document(cmd.OutOrStdout()), func(w io.Writer) error {
				_, err := io.WriteString(w, notices)
				return err
			})
		},
	}
}
