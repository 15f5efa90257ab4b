// Package torchenv names the environment variables with which users of PyTorch set its allocator.
package torchenv

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
)

// renamed is the first release of which the allocator for CUDA reads PYTORCH_ALLOC_CONF: since pull
// request 165135 of github.com/pytorch/pytorch it shares the settings of other devices. 2.9 has the
// variable, and ignores expandable_segments there without a message (issue 183387).
const renamed = "2.10"

// Export returns how users of PyTorch choose settings, written as key:value pairs with commas
// between them. No settings are what PyTorch does unasked. from is the first release that has all
// of the keys, "" if all have.
func Export(settings, from string) setting.Export {
	e := setting.Export{Framework: "PyTorch"}
	if settings == "" {
		return e
	}
	e.Environment, e.From, e.Since = []string{"PYTORCH_ALLOC_CONF=" + settings}, from, renamed
	if Older(from, renamed) {
		e.Before = []string{"PYTORCH_CUDA_ALLOC_CONF=" + settings}
	} else {
		e.Since = from
	}
	return e
}

// Older reports whether a version is older than a release, by their first two numbers. "" is older
// than any release.
func Older(version, release string) bool {
	return slices.Compare(numbers(version), numbers(release)) < 0
}

// numbers returns the first two numbers of a version: 1 and 13 of "1.13.0a0".
func numbers(version string) (list []int) {
	for _, part := range strings.SplitN(version, ".", 3) {
		n := 0
		for i := 0; i < len(part) && part[i] >= '0' && part[i] <= '9'; i++ {
			n, _ = strconv.Atoi(part[:i+1])
		}
		list = append(list, n)
	}
	return list[:min(len(list), 2)]
}
