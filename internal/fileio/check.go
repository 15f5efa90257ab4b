package fileio

import "fmt"

// CheckOutput returns the error that [Write] would return for path before it calls fill: the folder
// is missing or not writable, or path is a folder. Calling it first prevents a long computation
// whose output cannot be written. It does not change the file at path and opens no device or pipe.
func CheckOutput(path string) error {
	if path == "-" {
		return nil
	}
	if err := creatable(path); err != nil {
		return fmt.Errorf("write %s: %w", path, withoutPath(err))
	}
	return nil
}

// creatable creates and removes the temporary file of a path, unless a device or a pipe is there.
func creatable(path string) error {
	to, err := resolve(path)
	if err != nil || to.inPlace || to.open != nil {
		return err
	}
	f, err := create(to)
	if err != nil {
		return err
	}
	discard(f)
	return nil
}
