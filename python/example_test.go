package python_test

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/python"
)

func Example() {
	first, _, _ := strings.Cut(python.Torch, "\n")
	fmt.Println(strings.Trim(first, `"`))
	// Output: Let PyTorch allocate its GPU memory through a strategy of Vramyard.
}
