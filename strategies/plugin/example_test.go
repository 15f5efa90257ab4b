package plugin_test

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/strategies/plugin"
)

// A catalogue with the entry of plug-ins understands their addresses; a file that is missing is an
// error before anything is compiled or loaded.
func Example() {
	catalogue := setting.Catalogue{plugin.Spec()}
	_, err := catalogue.Lookup("plugin:missing.so?alloc=my_malloc&free=my_free", nil)
	fmt.Println(err)
	// Output: plugin: missing.so: no such file
}
