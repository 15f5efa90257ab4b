package standin_test

import (
	"fmt"

	"github.com/vramyard/vramyard/device/standin"
)

func ExampleScan() {
	facts, err := standin.Scan("site-packages")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range facts.Libraries {
		fmt.Println(l.SoName, len(l.Names))
	}
	// Output: site-packages/torch/version.py does not exist: expected a site-packages directory with PyTorch
}
