package launch_test

import (
	"context"
	"fmt"

	"github.com/vramyard/vramyard/harness/launch"
)

// A command that no Python runs is refused before anything is built.
func ExampleRun() {
	_, err := launch.Run(context.Background(), "", launch.Options{Command: []string{"true"}})
	fmt.Println(err)
	// Output: true: want a Python interpreter, or a script whose first line names one
}
