// Command asked prints a table of costs of the simulator as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/vramyard/vramyard/device/sim"
)

func main() {
	c, err := sim.ParseConfig([]byte(fmt.Sprintf(`{"costs":%q}`, os.Args[1])))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	t, _ := c.Costs.Costs()
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		os.Exit(1)
	}
}
