package cuda

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Config says which GPU, and how it is used. The zero value is the first one, without a limit.
type Config struct {
	// Driver is the path of the driver's library; "" is the one that NVIDIA's driver installs.
	Driver string `json:"driver,omitempty"`
	// Ordinal is the number of the GPU, 0 to 255, among those that CUDA_VISIBLE_DEVICES leaves.
	Ordinal int `json:"ordinal"`
	// Limit in bytes is the most that may be held; 0 is as much as there is.
	Limit device.Size `json:"limit"`
	// ForeignStreams says that the number of a stream is a CUstream that somebody else made, as
	// PyTorch passes it. Such a stream must live as long as it is named.
	ForeignStreams bool `json:"foreign_streams,omitempty"`
}

var errConfig = errors.New(`want "cuda", "cuda:1", or "cuda:0:24GiB" for at most so much of it`)

// IsDevice reports whether a text of the command line names a GPU, as [ParseDevice] reads it.
func IsDevice(text string) bool { return text == "cuda" || strings.HasPrefix(text, "cuda:") }

// ParseDevice reads a GPU as the command line names it: "cuda", "cuda:1", or "cuda:0:24GiB" for at
// most so much of it.
func ParseDevice(text string) (Config, error) {
	parts := strings.Split(text, ":")
	if parts[0] != "cuda" || len(parts) > 3 {
		return Config{}, fmt.Errorf("device %q: %w", text, errConfig)
	}
	var c Config
	if len(parts) > 1 {
		n, err := strconv.ParseUint(parts[1], 10, 8)
		if err != nil {
			return Config{}, fmt.Errorf("device %q: %w", text, errConfig)
		}
		c.Ordinal = int(n)
	}
	if len(parts) > 2 {
		n, err := device.ParseCapacity(parts[2])
		if err != nil {
			return Config{}, fmt.Errorf("device %q: %w", text, err)
		}
		c.Limit = n
	}
	return c, nil
}

// String returns the GPU as [ParseDevice] reads it, without the path of a driver.
func (c Config) String() string {
	text := "cuda:" + strconv.Itoa(c.Ordinal)
	if c.Limit != 0 {
		text += ":" + c.Limit.String()
	}
	return text
}
