package trace

import (
	"fmt"
	"strings"
)

// Part is one of several traces in a file, such as the trace of a device.
type Part struct {
	Name   string `json:"part"`   // name for selection
	Events int    `json:"events"` // events of the trace, or calls of the underlying log
}

// PartsError is the error of a reader for a file with several traces, if none was selected.
type PartsError struct {
	Name   string `json:"name"`   // name of the file, as Header.Name
	Format string `json:"format"` // as Header.Format
	Parts  []Part `json:"parts"`  // in the order of the file
}

func (e *PartsError) Error() string {
	return "holds several parts, name one of them: " + DescribeParts(e.Parts)
}

// DescribeParts lists parts for an error message.
func DescribeParts(parts []Part) string {
	const most = 16
	var list []string
	for i, p := range parts {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(parts)-most))
			break
		}
		list = append(list, fmt.Sprintf("%s (%d events)", clip([]byte(p.Name)), p.Events))
	}
	return strings.Join(list, ", ")
}
