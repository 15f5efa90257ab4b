package launch

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// WorkAreas is a policy for the work areas of cuDNN, whose sizes only cuDNN knows.
type WorkAreas struct {
	// Bound in bytes is the work area of every call without a row in a table.
	Bound device.Size
	// Table is the absolute path of a file with a row for each known convolution; "" for none.
	Table string
}

// String returns the policy as the stand-in of cuDNN reads it.
func (w WorkAreas) String() string {
	if w.Table != "" {
		return "table=" + w.Table
	}
	return "bound=" + strconv.FormatUint(uint64(w.Bound), 10)
}

// errWorkAreas says which policies there are.
var errWorkAreas = errors.New("want none, bound=SIZE or table=FILE")

// ParseWorkAreas reads a policy: none, bound=SIZE or table=FILE. It checks the rows of the file.
func ParseWorkAreas(text string) (w WorkAreas, err error) {
	kind, value, _ := strings.Cut(text, "=")
	switch {
	case text == "none":
	case kind == "bound":
		w.Bound, err = device.ParseSize(value)
	case kind == "table" && value != "":
		if w.Table, err = filepath.Abs(value); err == nil {
			err = checkTable(value)
		}
	default:
		err = fmt.Errorf("%q: %w", text, errWorkAreas)
	}
	return w, err
}

// row is a row of a table: a convolution and the bytes of its work area.
var row = regexp.MustCompile(`^(forward|data|filter)( [a-z]+=[-0-9,:]+)+ [0-9]{1,18}$`)

// errRow says what a row has.
var errRow = errors.New("want a row of vramyard.cudnn_table: a convolution and the bytes of its work area")

func checkTable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if t := lines.Text(); t != "" && !strings.HasPrefix(t, "#") && !row.MatchString(t) {
			return fmt.Errorf("%s:%d: %q: %w", path, n, t, errRow)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
