package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/fileio"
)

// snapshot compares the strategy with the recordings in a snapshot, device by device.
func (f *verifyFlags) snapshot(cmd *cobra.Command, path string) error {
	s, header, err := openSnapshot(cmd, path, f.source)
	if errors.Is(err, formats.ErrNoSnapshot) {
		return fmt.Errorf("%w: a trace needs --addresses", err)
	}
	if err != nil {
		return err
	}
	if name := torch.Replayed(s.Settings); name != "" && name != cachingName && !strings.HasPrefix(name, cachingName+":") {
		return fmt.Errorf("%s: a replay of the strategy %s, want a recording of PyTorch, or a replay of %s", header.Name,
			name, cachingName)
	}
	config := recordedConfig(s, f.config)
	target, err := cachingTarget(f.catalogue, config)
	if err != nil {
		return fmt.Errorf("%s: settings: %w", header.Name, err)
	}
	begin(cmd, stage{what: "judging the recording"})
	timelines, err := f.timelines(s, header.Name)
	if err != nil {
		return err
	}
	if len(timelines) > 1 && f.files.wanted("json") {
		return flagError("json", fmt.Errorf("%s has several devices with a history: name one with --part", header.Name))
	}
	var failed error
	for _, c := range timelines {
		h, err := verify.FromTimeline(c)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", header.Name, torch.PartOf(c.Device.Ordinal), err)
		}
		h.Name, h.Hash = header.Name, header.Hash
		if len(s.Devices) > 1 {
			h.Name += " " + torch.PartOf(c.Device.Ordinal)
		}
		if err := f.reportFindings(cmd, h.Name, c.Report); err != nil {
			return err
		}
		if !givesRules(config) {
			a, err := recordedAllocator(f.catalogue, []byte(config), c, "")
			if err != nil {
				return fmt.Errorf("%s: settings: %w", header.Name, err)
			}
			target = cmp.Or(a.target, target)
		}
		if err := f.verify(cmd, h, target); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// givesRules reports whether settings name the release to follow. Recorded ones do not.
func givesRules(config string) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(config), &fields); err != nil {
		panic(err) // recordedConfig made it
	}
	return fields["rules"] != nil
}

// openSnapshot reads a snapshot, from standard input for "-".
func openSnapshot(cmd *cobra.Command, path string, source formats.Options) (*torch.Snapshot, trace.Header, error) {
	o := reading(cmd, path, source)
	collectWithin(o.Memory)
	if path == "-" {
		return formats.ReadSnapshot(cmd.InOrStdin(), "stdin", o)
	}
	file, err := openFile(path)
	if err != nil {
		return nil, trace.Header{}, err
	}
	defer file.Close() // only read from: nothing can be lost
	return formats.ReadSnapshot(file, path, o)
}

// recordedConfig returns the recorded settings, replaced by the fields of config, a JSON object or
// "".
func recordedConfig(s *torch.Snapshot, config string) string {
	var fields, over map[string]json.RawMessage
	if config != "" {
		if err := json.Unmarshal([]byte(config), &over); err != nil {
			panic(err) // the flag refuses anything but an object
		}
	}
	if err := json.Unmarshal(torch.Config(s.Settings), &fields); err != nil {
		panic(err) // it was marshalled just now
	}
	maps.Copy(fields, over)
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // its parts are JSON
	}
	return string(raw)
}

func (f *verifyFlags) timelines(s *torch.Snapshot, name string) ([]*torch.Timeline, error) {
	var timelines []*torch.Timeline
	var parts []string
	for i := range s.Devices {
		part := torch.PartOf(s.Devices[i].Ordinal)
		c := torch.Interpret(&s.Devices[i])
		if c.Report.Allocs > 0 {
			parts = append(parts, part)
			if f.source.Part == "" || f.source.Part == part {
				timelines = append(timelines, c)
			}
		}
	}
	switch {
	case len(parts) == 0:
		return nil, fmt.Errorf("%s: %w", name, verify.ErrNoHistory)
	case len(timelines) == 0:
		return nil, flagError("part", fmt.Errorf("%s has no history of %q: want %s", name, f.source.Part,
			strings.Join(parts, ", ")))
	}
	return timelines, nil
}

// reportFindings reports the inconsistencies of a recording, and whether its beginning was lost.
func (f *verifyFlags) reportFindings(cmd *cobra.Command, name string, r *torch.Report) error {
	if f.files.onStdout() || len(r.Findings) == 0 {
		return nil
	}
	return fileio.Write("-", cmd.OutOrStdout(), func(w io.Writer) error {
		for i := range r.Findings {
			if _, err := fmt.Fprintf(w, "%s: %v\n", name, &r.Findings[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
