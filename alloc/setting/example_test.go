package setting_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/strategies/bfc"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// A catalogue of two strategies finds presets, reads configurations and explains mistyped names.
func ExampleCatalogue_Lookup() {
	all := setting.Catalogue{
		setting.SpecOf("tlsf", "two-level segregated fit", tlsf.New),
		setting.SpecOf("bfc", "best fit with coalescing", bfc.New,
			setting.Preset{Name: "growth", Doc: "regions as needed", JSON: `{"allow_growth":true}`}),
	}
	for _, name := range []string{"bfc:growth", "tslf"} {
		if setup, err := all.Lookup(name, nil); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("found", setup.Name)
		}
	}
	// Output:
	// found bfc:growth
	// unknown strategy "tslf": did you mean "tlsf"? want one of tlsf, bfc; "vramyard strategies" lists the presets
}
