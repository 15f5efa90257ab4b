package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
)

// namedUsage describes the items of a flag --strategies.
const namedUsage = oneNamedUsage + ", separated by commas"

// oneNamedUsage describes the value of a flag --strategy.
const oneNamedUsage = `by name, name:preset or name{"setting":value}`

// configValue is the value of a flag --config: a JSON object, whose limit has its unit.
type configValue string

// addConfig adds the flag --config to a command.
func addConfig(c *cobra.Command, config *string, usage string) {
	c.Flags().Var((*configValue)(config), "config", usage)
}

func (v *configValue) String() string { return string(*v) }

func (v *configValue) Type() string { return "string" }

func (v *configValue) Set(text string) error {
	_, rest, err := cutObject(text)
	if e, ok := errors.AsType[*jsonError](err); ok {
		return fmt.Errorf("character %d: %w", utf8.RuneCountInString(text[:e.at])+1, err)
	}
	if err == nil && rest != "" {
		err = errors.New("text after the JSON object")
	}
	*v = configValue(text)
	return cmp.Or(err, judgeUnit(text, "limit"))
}

// strategyArg is a strategy named on the command line, with the settings that replace the preset's
// as a JSON object, "" for none.
type strategyArg struct{ name, config string }

// String returns the item of the list.
func (a strategyArg) String() string { return a.name + a.config }

// setup looks the strategy up. A setup with settings of its own has them in its name, so that two
// setups of one strategy differ in every table.
func (a strategyArg) setup(c setting.Catalogue) (setting.Setup, error) {
	if err := judgeUnit(a.config, "limit"); err != nil {
		return setting.Setup{}, fmt.Errorf("configuration of %s: %w", a.name, err)
	}
	return c.Lookup(a.name, json.RawMessage(a.config))
}

// parseStrategyArgs reads a list of strategies separated by commas and drops repeated items. The
// settings of an item are compacted.
func parseStrategyArgs(list string) (all []strategyArg, err error) {
	empty := 0 // the place of an empty item
	for rest, more := list, list != ""; more; rest, more = strings.CutPrefix(rest, ",") {
		var a strategyArg
		a.name = rest
		if i := strings.IndexAny(rest, ",{"); i >= 0 {
			a.name = rest[:i]
		}
		if strings.TrimSpace(a.name) == "" && empty == 0 {
			empty = utf8.RuneCountInString(list[:len(list)-len(rest)]) + 1
		}
		rest = rest[len(a.name):]
		a.name = strings.TrimSpace(a.name)
		if strings.HasPrefix(rest, "{") {
			from := len(list) - len(rest)
			if a.name == "" {
				return nil, fmt.Errorf("character %d: want the name of a strategy before its settings",
					utf8.RuneCountInString(list[:from])+1)
			}
			a.config, rest, err = cutObject(rest)
			if err == nil && rest != "" && rest[0] != ',' {
				from, err = len(list)-len(rest), errors.New("want a comma after the object")
			}
			if err != nil {
				return nil, a.wrong(list, from, err)
			}
		}
		if a.name != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	if empty > 0 && len(all) > 0 {
		return nil, fmt.Errorf("character %d: empty item: want the name of a strategy between commas", empty)
	}
	return all, nil
}

// strategyOf reads --strategy and --config, which holds the settings of the strategy.
func strategyOf(strategy, config string) (a strategyArg, err error) {
	all, err := parseStrategyArgs(strategy)
	switch {
	case err != nil:
		return a, flagError("strategy", err)
	case len(all) != 1:
		return a, flagError("strategy", fmt.Errorf("%q: want one strategy", strategy))
	case config == "":
		return all[0], nil
	case all[0].config != "":
		return a, flagError("config", fmt.Errorf("%s has settings in --strategy: want one of the two", all[0].name))
	}
	return strategyArg{all[0].name, config}, nil
}

// lookup is setup with the name of the flag in its error: --config if its settings are wrong, and
// else the flag that names the strategy.
func (a strategyArg) lookup(c setting.Catalogue, flag, config string) (setting.Setup, error) {
	s, err := a.setup(c)
	if err == nil {
		return s, nil
	}
	if _, unknown := c.Lookup(a.name, nil); unknown == nil && config != "" {
		flag = "config"
	}
	return s, flagError(flag, err)
}

// wrong returns an error about the settings with its place in a text: the byte from, or the byte
// behind from that a [jsonError] names.
func (a strategyArg) wrong(text string, from int, err error) error {
	if e, ok := errors.AsType[*jsonError](err); ok {
		from += e.at
	}
	return fmt.Errorf("configuration of %s, character %d: %w", a.name, utf8.RuneCountInString(text[:from])+1, err)
}

// jsonError is an error about JSON at a byte of a text.
type jsonError struct {
	error
	at int
}

// cutObject cuts a JSON object off the start of a text and compacts it. Its error is a [jsonError].
func cutObject(text string) (object, rest string, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return "", "", errors.New(`want a JSON object, such as {"limit":"16GiB"}`)
	}
	err = d.Decode(&raw)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "", "", &jsonError{err, int(wrong.Offset) - 1}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "", "", &jsonError{errors.New("the JSON object does not end"), len(text)}
	}
	if err != nil {
		return "", "", err
	}
	var b bytes.Buffer
	err = json.Compact(&b, raw)
	return b.String(), strings.TrimLeft(text[d.InputOffset():], " \t\n"), err
}

// strategyArgs reads --strategies and, unless it is "", --config, which holds the settings of the
// one strategy that is named.
func strategyArgs(list, config string) ([]strategyArg, error) {
	all, err := parseStrategyArgs(list)
	switch {
	case err != nil:
		return nil, flagError("strategies", err)
	case len(all) == 0:
		return nil, flagError("strategies", errNoNames)
	case config == "":
		return all, nil
	case len(all) > 1:
		return nil, flagError("config",
			fmt.Errorf(`%d strategies are named: want one, or settings in --strategies, such as %s{"limit":"16GiB"}`, len(all),
				all[0].name))
	case all[0].config != "":
		return nil, flagError("config", fmt.Errorf("%s has settings in --strategies: want one of the two", all[0].name))
	}
	all[0].config = config
	return all, nil
}

// lookupAll returns the setups of the strategies that --strategies and --config name.
func lookupAll(c setting.Catalogue, list, config string) ([]setting.Setup, error) {
	all, err := strategyArgs(list, config)
	if err != nil {
		return nil, err
	}
	setups := make([]setting.Setup, len(all))
	for i, a := range all {
		if setups[i], err = a.lookup(c, "strategies", config); err != nil {
			return nil, err
		}
		if config == "" {
			setups[i].Name = a.String()
		}
	}
	return setups, nil
}
