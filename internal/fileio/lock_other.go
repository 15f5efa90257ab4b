//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package fileio

import "os"

// lock does nothing: there are no locks that end with the program.
func lock(*os.File) bool { return true }

// removeAbandoned does nothing: whether another program is writing the file is not known.
func removeAbandoned(string) {}

// finish closes a file, which cannot be renamed while it is open, and gives it its name. It reports
// whether the file has it.
func finish(f *os.File, target string) (renamed bool, err error) {
	if err := f.Close(); err != nil {
		return false, err
	}
	err = os.Rename(f.Name(), target)
	return err == nil, err
}

// abandon closes a file, which cannot be removed while it is open, and removes it.
func abandon(f *os.File) {
	_ = f.Close()           // nothing in it is needed
	_ = os.Remove(f.Name()) // stays if it cannot be removed
}
