// Command snapshots measures reading PyTorch's memory snapshots beside Python's unpickler.
//
// Each file is read by each reader in a separate process, in interleaved rounds. Time is the CPU
// time of all threads; memory is the growth of the process's peak during the read, as the kernel
// reports it. Both are medians. It needs Linux and python3.
//
//	go -C benchmarks/snapshots run . [--rounds 5] [--entries 1000000] [FILE...]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vramyard/vramyard/harness/trace/torch"
)

// readCommand is the first argument of the process that reads.
const readCommand = "read-one-file"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "snapshots:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == readCommand {
		return readOne(args[1])
	}
	fl := flag.NewFlagSet("snapshots", flag.ContinueOnError)
	rounds := fl.Int("rounds", 5, "interleaved rounds")
	entries := fl.Int("entries", 1_000_000, "`number` of entries of the made-up files with shared stacks")
	if err := fl.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	dir, err := os.MkdirTemp("", "snapshots")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // nothing of it is wanted
	if _, err := output("python3", append([]string{"make.py", dir, strconv.Itoa(*entries)}, fl.Args()...)...); err != nil {
		return err
	}
	return table(dir, *rounds)
}

// figures are what one reader took.
type figures struct{ seconds, bytes []float64 }

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// table measures every file of a directory.
func table(dir string, rounds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds, %s, GOMAXPROCS %d\n\n", rounds, runtime.Version(), runtime.GOMAXPROCS(0))
	fmt.Println("| file | MB | CPU s | Python | ratio | peak MB | Python | ratio |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		info, err := f.Info()
		if err != nil {
			return err
		}
		var ours, theirs figures
		for range rounds {
			if err := ours.take(self, readCommand, path); err != nil {
				return err
			}
			if err := theirs.take("python3", "load.py", path); err != nil {
				return err
			}
		}
		const mb = 1e6
		a, b := median(ours.seconds), median(theirs.seconds)
		x, y := median(ours.bytes)/mb, median(theirs.bytes)/mb
		fmt.Printf("| %s | %.1f | %.3f | %.3f | %.2f | %.1f | %.1f | %.3f |\n", f.Name(), float64(info.Size())/mb, a, b,
			a/b, x, y, x/y)
	}
	return nil
}

func (f *figures) take(command string, args ...string) error {
	out, err := output(command, args...)
	if err != nil {
		return err
	}
	var seconds, peak float64
	if _, err := fmt.Sscan(out, &seconds, &peak); err != nil {
		return fmt.Errorf("%s printed %q: %w", command, out, err)
	}
	f.seconds, f.bytes = append(f.seconds, seconds), append(f.bytes, peak)
	return nil
}

func output(command string, args ...string) (string, error) {
	var said bytes.Buffer
	c := exec.Command(command, args...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}

// readOne reads a file and prints what that took.
func readOne(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	before, start := peak(), cpu()
	s, err := torch.Read(f, nil)
	if err != nil {
		return err
	}
	fmt.Println((cpu() - start).Seconds(), peak()-before)
	runtime.KeepAlive(s)
	return nil
}

// cpu returns the CPU time of the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it takes no argument that could be wrong
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peak returns the most memory that the process had so far.
func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err) // the documentation of the command requires Linux
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		panic(err)
	}
	return kib << 10
}
