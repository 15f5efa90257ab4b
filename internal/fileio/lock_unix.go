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
// it is removed, so that a program that has just created it finds out that it has lost it.
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

// finish gives a file its name and closes it, in this order: closing ends the lock, and then the
// file could be taken for a leftover. It reports whether the file has its name.
func finish(f *os.File, target string) (renamed bool, err error) {
	if err := os.Rename(f.Name(), target); err != nil {
		return false, err
	}
	return true, f.Close()
}

// abandon removes a file and closes it, in this order: once the lock has ended, the name may be
// another write's.
func abandon(f *os.File) {
	_ = os.Remove(f.Name()) // stays if it cannot be removed
	_ = f.Close()           // nothing in it is needed
}
