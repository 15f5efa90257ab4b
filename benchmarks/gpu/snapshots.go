package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/vramyard/vramyard/internal/fileio"
)

// mostShipped is the maximum size of a snapshot in the repository, in bytes.
const mostShipped = 1_000_000

// programs are the recorded programs, by their names in record.py.
var programs = []string{"cnn_train", "transformer_train", "transformer_kv"}

func (s *session) snapshots(ctx context.Context) (State, string) {
	if err := os.MkdirAll(filepath.Join(s.out, "snapshots"), 0o755); err != nil {
		return ended(err)
	}
	states := make([]State, len(programs))
	reasons := make([]string, len(programs))
	for i, name := range programs {
		shot, err := s.record(ctx, name)
		if states[i], reasons[i] = ended(err); err == nil {
			s.result.Snapshots = append(s.result.Snapshots, *shot)
		}
	}
	return summed("snapshots", len(programs), func(i int) (string, State, string) {
		return programs[i], states[i], reasons[i]
	})
}

// record records one program, compresses its snapshot and reads it back.
func (s *session) record(ctx context.Context, name string) (*Snapshot, error) {
	plain := filepath.Join(s.out, "logs", name+".pickle")
	text, err := s.program(ctx, "snapshots", s.python, s.file(recordScript), name, plain)
	if err != nil {
		return nil, err
	}
	shot := &Snapshot{File: "snapshots/" + name + ".pickle.zst"}
	var facts struct {
		What                string
		Steps, Seed, Events int
		Frames              bool
	}
	if err := json.Unmarshal([]byte(lastLine(text)), &facts); err != nil {
		return nil, fmt.Errorf("%s: %w", recordScript, err)
	}
	shot.What, shot.Steps, shot.Seed, shot.Events, shot.Frames = facts.What, facts.Steps, facts.Seed, facts.Events,
		facts.Frames
	packed := filepath.Join(s.out, filepath.FromSlash(shot.File))
	if err := pack(plain, packed); err != nil {
		return nil, err
	}
	if err := os.Remove(plain); err != nil {
		return nil, err
	}
	if err := shot.measure(packed); err != nil {
		return nil, err
	}
	if shot.Events == 0 {
		return nil, fmt.Errorf("the snapshot has no history")
	}
	if _, err := s.program(ctx, "snapshots", s.file("vramyard"), "trace", "info", packed); err != nil {
		return nil, err
	}
	// The prediction by our caching allocator is informative only: a snapshot is valid without it.
	verdict, err := s.program(ctx, "snapshots", s.file("vramyard"), "verify", packed)
	if shot.Settled = lastLine(verdict); err != nil {
		shot.Settled = err.Error()
	}
	return shot, ctx.Err()
}

// pack compresses a file.
func pack(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return fileio.Write(to, nil, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// measure sets the size and the checksum of the file.
func (shot *Snapshot) measure(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	shot.Bytes, shot.SHA256 = int64(len(text)), sumOf(text)
	if shot.Bytes > mostShipped {
		return fmt.Errorf("%s has %d bytes; shipped files have at most %d", shot.File, shot.Bytes, mostShipped)
	}
	return nil
}
