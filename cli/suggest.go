package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vramyard/vramyard/internal/nearest"
)

// knownCommand refuses arguments of a command that only has subcommands, and suggests
// the nearest one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand returns the error for an unknown subcommand.
func unknownCommand(above *cobra.Command, name string) error {
	var names []string
	for _, c := range above.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q: %s", name, above.CommandPath(), nearest.Want(name, names))
}

// deviceWords are words for which the flag --device is suggested.
var deviceWords = []string{"card", "gpu", "capacity", "memory", "size"}

// numbers describes the values of flags by their types.
var numbers = map[string]string{
	"bool": "true or false", "float64": "a number", "int": "a whole number", "int64": "a whole number",
	"uint16": "a whole number from 0 to 65535", "uint64": "a whole number, not negative",
}

// unknownFlag adds the nearest flag name to the error of an unknown flag, and the wanted type to
// the error of a value that is not a number.
func unknownFlag(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if _, number := errors.AsType[*strconv.NumError](err); number {
			return fmt.Errorf("invalid argument %q for %q flag: want %s", invalid.GetValue(), "--"+invalid.GetFlag().Name,
				numbers[invalid.GetFlag().Value.Type()])
		}
		return err
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	if cmd.Flags().Lookup("device") != nil && slices.Contains(deviceWords, unknown.GetSpecifiedName()) {
		return fmt.Errorf(`%w: did you mean --device, such as "sim:24GiB"?`, err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	if near := nearest.Name("--"+unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Errorf("%w: did you mean %s?", err, near)
	}
	return err
}
