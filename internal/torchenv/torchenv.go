// Package torchenv names the environment variables that configure the allocator of PyTorch.
package torchenv

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
)

// Framework is the name of PyTorch in [setting.Export].
const Framework = "PyTorch"

// renamed is the first release whose CUDA allocator reads PYTORCH_ALLOC_CONF, which pull request
// 165135 of github.com/pytorch/pytorch made common to all devices. Release 2.9 has the variable but
// silently ignores expandable_segments in it (issue 183387).
const renamed = "2.10"

// Export returns the environment variables for settings, given as key:value pairs separated by
// commas. Empty settings are PyTorch's defaults and need no variable. from is the first release
// that has all of the keys, "" if every release has them.
func Export(settings, from string) setting.Export {
	e := setting.Export{Framework: Framework}
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
