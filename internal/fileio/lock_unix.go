//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package fileio

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a new file until it is closed. It reports false if another open file holds the lock,
// and true where the file system has no locks.
func lock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// removeAbandoned removes a temporary file that no program holds locked. The file is locked until
// it is removed, so that a program that has just created it can detect the removal.
func removeAbandoned(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close() // only locked: nothing can be lost
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && stillNamed(f, name) {
		_ = os.Remove(name) // if it stays, the next number is taken
	}
}

// finish renames a file to its target, then closes it. Closing first would release the lock, and
// another program could remove the file as abandoned. It reports whether the file was renamed.
func finish(f *os.File, target string) (renamed bool, err error) {
	if err := os.Rename(f.Name(), target); err != nil {
		return false, err
	}
	return true, f.Close()
}

// abandon removes a file, then closes it. Closing first would release the lock, and the name could
// already belong to another write.
func abandon(f *os.File) {
	_ = os.Remove(f.Name()) // on failure the next write to the target removes it
	_ = f.Close()           // its content is discarded
}
