//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package outfile

import "os"

// lock does nothing: there are no locks that end with the program.
func lock(*os.File) bool { return true }

// removeAbandoned does nothing: whether another program is writing the file is not known.
func removeAbandoned(string) {}

// finish closes a file, which cannot be renamed while it is open, and gives it its name.
func finish(f *os.File, target string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}
