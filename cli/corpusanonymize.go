package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/fileio"
)

func newCorpusAnonymize(catalogue setting.Catalogue) *cobra.Command {
	var source formats.Options
	var to string
	c := &cobra.Command{
		Use:   "anonymize TRACE OUT",
		Short: "Remove names, call stacks, times and paths from a trace",
		Long: `Write a trace that can be given away. A TRACE is a file of any format that docs/traces.md lists, such as a snapshot of PyTorch.

Removed: times, call stacks, names and paths, and the whole header except known settings, versions and byte counts.
Replaced by numbers, equal ones by equal ones: the texts of tags and marks, ids, threads, handles of streams and pools.
Kept: the kinds and the order of all events, sizes, alignments, lifetimes, streams, pools, settings, and whether a mark
begins a step. So every strategy places the blocks as before. docs/corpus.md has the complete lists.

The name of OUT or --to decides the format, as in "vramyard trace convert".`,
		Example: "  vramyard corpus anonymize snapshot.pickle given.trace.gz",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, out := args[0], args[1]
			if err := argument(out).check(in); err != nil {
				return err
			}
			form, err := traceForm(to, out)
			if err != nil {
				return err
			}
			t, err := openSource(in, reading(cmd, in, source), cmd.InOrStdin())
			if err != nil {
				return err
			}
			a := anonymizer{catalogue}
			made, err := trace.Anonymize(walking(cmd, "anonymizing", t), a.header(t.Head().Header), a.conf)
			if err != nil {
				return fmt.Errorf("anonymize %s: %w", t.Head().Header.Name, err)
			}
			return fileio.Write(out, document(cmd.OutOrStdout()), func(w io.Writer) error {
				return form.Write(w, walking(cmd, "writing", made))
			})
		},
	}
	addSource(c, &source)
	c.Flags().StringVar(&to, "to", "", toUsage)
	return c
}

// anonymizer keeps the parts of a header that cannot hold text of the user: known words, numbers,
// and settings that the strategies accept.
type anonymizer struct{ catalogue setting.Catalogue }

var (
	onlyDigits = regexp.MustCompile(`^[0-9]{1,20}$`)
	oneWord    = regexp.MustCompile(`^[0-9A-Za-z_.]{1,40}$`)
	release    = regexp.MustCompile(`^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?`)
)

// removed is listed under [trace.AbsentKey].
const removed = "times, call stacks, names and paths: removed by vramyard corpus anonymize"

// header returns the header of an anonymous trace, without a name.
func (a anonymizer) header(h trace.Header) trace.Header {
	name, _ := h.Get(trace.FrameworkKey)
	var of framework
	for _, f := range frameworks {
		if f.name == name {
			of = f
		}
	}
	meta := []trace.Pair{{Key: trace.AbsentKey, Value: removed}}
	for _, p := range h.Meta {
		if p.Value = a.value(p, of); p.Value != "" {
			meta = append(meta, p)
		}
	}
	return trace.Header{Format: h.Format, Meta: meta}
}

// value returns the value of a pair without text of the user, or "" to remove the pair. of is the
// framework, zero for PyTorch and unknown ones.
func (a anonymizer) value(p trace.Pair, of framework) string {
	switch p.Key {
	case trace.FrameworkKey:
		if p.Value == "PyTorch" || of.name != "" {
			return p.Value
		}
	case trace.TorchKey:
		return release.FindString(p.Value)
	case trace.LimitKey, torch.KeyCapacity, torch.KeyPeak, torch.KeyOpening, "fault-nth":
		return onlyDigits.FindString(p.Value)
	case torch.KeyOrder:
		if p.Value == torch.OrderFalling {
			return p.Value
		}
	case torch.KeyWrapped:
		return "the recording says so"
	case torch.KeyConfig:
		text, _ := a.config(p.Value)
		return text
	default:
		if of.name != "" && slices.Contains(of.settings(), p.Key) && of.check(p, of.name) == nil {
			return oneWord.FindString(p.Value)
		}
	}
	return ""
}

// conf returns the settings of a [trace.Conf] event without blanks.
func (a anonymizer) conf(text string) (string, error) {
	raw, err := json.Marshal(map[string]string{"conf": text})
	if err != nil {
		return "", err
	}
	if _, err = a.config(string(raw)); err != nil {
		return "", fmt.Errorf("settings %.60q may hold a name: %w", text, err)
	}
	return withoutBlanks(text), nil
}

// config returns settings of the strategy caching without blanks. It fails if the strategy does not
// accept them, and for settings between two marks, which name them.
func (a anonymizer) config(text string) (string, error) {
	if strings.Contains(text, "@") {
		return "", fmt.Errorf("%.60q: want settings that hold for the whole run", text)
	}
	if _, err := cachingTarget(a.catalogue, text); err != nil {
		return "", err
	}
	return withoutBlanks(text), nil
}

func withoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }
