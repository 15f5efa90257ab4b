package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vramyard/vramyard/alloc/setting"
)

// namedUsage describes the items of a flag --strategies.
const namedUsage = `by name, name:preset or name{"setting":value}, separated by commas`

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
	for rest := list; rest != ""; rest = strings.TrimPrefix(rest, ",") {
		var a strategyArg
		a.name = rest
		if i := strings.IndexAny(rest, ",{"); i >= 0 {
			a.name = rest[:i]
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
	return all, nil
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
	if _, _, err := cutObject(config); err != nil {
		return nil, flagError("config", all[0].wrong(config, 0, err))
	}
	all[0].config = config
	return all, judgeConfig(config)
}

// lookupAll returns the setups of the strategies that --strategies and --config name.
func lookupAll(c setting.Catalogue, list, config string) ([]setting.Setup, error) {
	all, err := strategyArgs(list, config)
	if err != nil {
		return nil, err
	}
	flag := "strategies"
	if config != "" {
		flag = "config"
	}
	setups := make([]setting.Setup, len(all))
	for i, a := range all {
		if setups[i], err = a.setup(c); err != nil {
			return nil, flagError(flag, err)
		}
		if config == "" {
			setups[i].Name = a.String()
		}
	}
	return setups, nil
}
