// Package strategies is the catalogue: every strategy of the project with its presets.
//
// It is a literal list. A strategy of your own is appended to your own copy of it:
//
//	mine := append(strategies.All(), setting.SpecOf("mine", "my allocator", mine.New))
package strategies
