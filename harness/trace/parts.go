package trace

import (
	"fmt"
	"strings"
)

// Part is one of several traces in a file, such as that of one device.
type Part struct {
	Name   string `json:"part"`   // by which it is chosen
	Events int    `json:"events"` // events of the trace, or calls of the log that it is made from
}

// PartsError is the error of a reader that found several traces in a file and was not asked for one
// of them.
type PartsError struct {
	Name   string `json:"name"`   // name of the file, as Header.Name
	Format string `json:"format"` // as Header.Format
	Parts  []Part `json:"parts"`  // in the order of the file
}

// Error implements error.
func (e *PartsError) Error() string {
	return "holds several parts, name one of them: " + DescribeParts(e.Parts)
}

// DescribeParts lists parts in words, for a message.
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
