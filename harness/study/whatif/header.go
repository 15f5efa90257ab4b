package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/nearest"
)

var (
	errConfig = errors.New(`want a JSON object, such as {"conf":"max_split_size_mb:64"}`)
	errNumber = errors.New("want a whole number")
	errBytes  = errors.New("want a whole number of bytes")
	errRepeat = errors.New("given twice: want one line")
)

// headerKeys are the keys of a header on which an answer depends, each with the check of its value.
var headerKeys = []struct {
	key   string
	check func(value string) error
}{
	{trace.FrameworkKey, checkFramework},
	{trace.TorchKey, func(value string) error {
		if value == "" || !torchVersion.MatchString(value) {
			return errTorchVersion
		}
		return nil
	}},
	{torch.KeyConfig, func(value string) error {
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(value), &fields) != nil || fields == nil {
			return errConfig
		}
		return nil
	}},
	{trace.LimitKey, numeric(errBytes)},
	{torch.KeyCapacity, numeric(errBytes)},
	{torch.KeyPeak, numeric(errBytes)},
	{torch.KeyOpening, numeric(errNumber)},
}

func checkFramework(value string) error {
	known := []string{pytorch, tensorflow, jax}
	if !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, value) }) {
		return errors.New(nearest.Want(value, known))
	}
	return nil
}

// numeric returns a check that fails with err unless the value is a number below 2^62.
func numeric(err error) func(string) error {
	return func(value string) error {
		if _, bad := strconv.ParseUint(value, 10, 62); bad != nil {
			return err
		}
		return nil
	}
}

// CheckHeader checks the pairs of a header on which an answer depends. It fails for a value that is
// not valid, a second value, a misspelled key, and a variable of PyTorch, each of which would
// change the answer without a sign. Other keys are comments. The caller knows settings as more
// keys, and checks their values. path is the file for messages.
func CheckHeader(head trace.Head, path string, settings []string) error {
	known := slices.Clone(settings)
	for _, k := range headerKeys {
		known = append(known, k.key)
	}
	seen := map[string]bool{}
	for i, p := range head.Header.Meta {
		place := head.PairPlace(i, path)
		if !slices.Contains(known, p.Key) {
			if near := nearest.Typo(p.Key, known); near != "" {
				return fmt.Errorf("%s: unknown key %q: did you mean %q?", place, p.Key, near)
			}
			if p.Key == "PYTORCH_ALLOC_CONF" || p.Key == "PYTORCH_CUDA_ALLOC_CONF" {
				config, _ := json.Marshal(map[string]string{confField: p.Value}) // strings can be encoded
				return fmt.Errorf("%s: unknown key %q: want %s=%s", place, p.Key, torch.KeyConfig, clip(string(config)))
			}
			continue
		}
		if seen[p.Key] {
			return fmt.Errorf("%s: %s=%s: %w", place, p.Key, clip(p.Value), errRepeat)
		}
		seen[p.Key] = true
		for _, k := range headerKeys {
			if k.key != p.Key {
				continue
			}
			if err := k.check(p.Value); err != nil {
				return fmt.Errorf("%s: %s=%s: %w", place, p.Key, clip(p.Value), err)
			}
		}
	}
	return nil
}

// clip shortens a value for a message.
func clip(value string) string {
	const most = 60
	if len(value) > most {
		return strings.ToValidUTF8(value[:most], "") + "..."
	}
	return value
}
