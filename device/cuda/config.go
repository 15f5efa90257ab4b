package cuda

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// Config selects a GPU and how it is used. The zero value is the first GPU, without a limit.
type Config struct {
	// Driver is the path of the driver's library; "" is the library that NVIDIA's driver installs.
	Driver string `json:"driver,omitempty"`
	// Ordinal is the number of the GPU, 0 to 255, among the GPUs visible under CUDA_VISIBLE_DEVICES.
	Ordinal int `json:"ordinal"`
	// Limit is the maximum number of bytes held; 0 is unlimited.
	Limit device.Size `json:"limit"`
	// ForeignStreams means that stream numbers are CUstreams of the caller, such as PyTorch's. A
	// stream must exist as long as it is in use.
	ForeignStreams bool `json:"foreign_streams,omitempty"`
}

var errConfig = errors.New(`want "cuda", "cuda:1", or "cuda:0:24GiB" with a limit`)

// IsDevice reports whether a command-line argument names a GPU in the form of [ParseDevice].
func IsDevice(text string) bool { return text == "cuda" || strings.HasPrefix(text, "cuda:") }

// ParseDevice parses a GPU argument: "cuda", "cuda:1", or "cuda:0:24GiB" with a limit.
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

// String returns the GPU in the form of [ParseDevice], without the path of a driver.
func (c Config) String() string {
	text := "cuda:" + strconv.Itoa(c.Ordinal)
	if c.Limit != 0 {
		text += ":" + c.Limit.String()
	}
	return text
}
