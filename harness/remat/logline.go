package remat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// field is a set of fields of a line.
type field uint32

const (
	fAnnotation field = 1 << iota
	fName
	fMemory
	fAlias
	fResult
	fArgs
	fTime
	fMutate
	fDst
	fSrc
	fFlops
	fBytes
	fWorkspace
	fRecomputable
	fStream
	fSeed
	fInstruction
)

// extended is the fields that DTRLOG/1 adds to operators.
const extended = fFlops | fBytes | fWorkspace | fRecomputable | fStream | fSeed

// maxName bounds the length of a name in bytes.
const maxName = 4096

type logLine struct {
	has          field // the fields that the line has
	instruction  string
	annotation   string
	name         string
	dst, src     string
	result, args []string
	mutate       []string
	memory, time int64
	workspace    int64
	alias        int64
	other        int64 // FLOPS, BYTES, STREAM and SEED: checked, then ignored
	recomputable bool
}

// memoryBound returns an upper bound of the memory that a schedule needs for the line, names
// included.
func (r *logLine) memoryBound() int64 {
	const perLine, perItem = 384, 256
	n := perLine + len(r.name) + len(r.dst) + len(r.src)
	for _, list := range [][]string{r.result, r.args, r.mutate} {
		for _, text := range list {
			n += perItem + len(text)
		}
	}
	return int64(n)
}

// fields holds the bit and the decoder of each field.
var fields = map[string]struct {
	bit  field
	read func(r *logLine, v any) error
}{
	"INSTRUCTION":  {fInstruction, func(r *logLine, v any) error { return text(&r.instruction, v) }},
	"ANNOTATION":   {fAnnotation, func(r *logLine, v any) error { return text(&r.annotation, v) }},
	"NAME":         {fName, func(r *logLine, v any) error { return text(&r.name, v) }},
	"DST":          {fDst, func(r *logLine, v any) error { return text(&r.dst, v) }},
	"SRC":          {fSrc, func(r *logLine, v any) error { return text(&r.src, v) }},
	"RESULT":       {fResult, func(r *logLine, v any) error { return stringList(&r.result, v) }},
	"ARGS":         {fArgs, func(r *logLine, v any) error { return stringList(&r.args, v) }},
	"MUTATE":       {fMutate, func(r *logLine, v any) error { return stringList(&r.mutate, v) }},
	"MEMORY":       {fMemory, func(r *logLine, v any) error { return number(&r.memory, v, 0, maxValue) }},
	"TIME":         {fTime, func(r *logLine, v any) error { return number(&r.time, v, 0, maxValue) }},
	"ALIAS":        {fAlias, func(r *logLine, v any) error { return number(&r.alias, v, NoAlias, maxValue) }},
	"FLOPS":        {fFlops, func(r *logLine, v any) error { return number(&r.other, v, 0, 1<<62) }},
	"BYTES":        {fBytes, func(r *logLine, v any) error { return number(&r.other, v, 0, 1<<62) }},
	"WORKSPACE":    {fWorkspace, func(r *logLine, v any) error { return number(&r.workspace, v, 0, maxValue) }},
	"STREAM":       {fStream, func(r *logLine, v any) error { return number(&r.other, v, 0, 1<<62) }},
	"SEED":         {fSeed, func(r *logLine, v any) error { return number(&r.other, v, -1<<62, 1<<62) }},
	"RECOMPUTABLE": {fRecomputable, func(r *logLine, v any) error { return boolean(&r.recomputable, v) }},
}

// parse reads one line. Errors name the field.
func (r *logLine) parse(line []byte) error {
	*r = logLine{recomputable: true}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("want a JSON object")
	}
	for d.More() {
		if err := r.field(d); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text after the JSON object")
	}
	if r.has&fInstruction == 0 {
		return errors.New("INSTRUCTION is missing")
	}
	return nil
}

func (r *logLine) field(d *json.Decoder) error {
	key, err := d.Token()
	if err != nil {
		return errJSON(err)
	}
	name, _ := key.(string) // the decoder accepts string keys only
	f, ok := fields[name]
	switch {
	case !ok:
		return fmt.Errorf("unknown field %s", clip(name))
	case r.has&f.bit != 0:
		return fmt.Errorf("%s is given twice", name)
	}
	r.has |= f.bit
	v, err := value(d)
	if err != nil {
		return err
	}
	if err := f.read(r, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// value reads a string, a number, a boolean or null, or a list of strings and numbers as a
// []string.
func value(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errJSON(err)
	}
	if t != json.Delim('[') {
		if _, nested := t.(json.Delim); nested {
			return nil, errors.New("nested object: want a string, number, boolean or list")
		}
		return t, nil
	}
	list := []string{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, errJSON(err)
		}
		switch v := t.(type) {
		case string:
			list = append(list, v)
		case json.Number:
			list = append(list, v.String())
		default:
			return nil, errors.New("want lists of strings or numbers")
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, errJSON(err)
	}
	return list, nil
}

func errJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("JSON ends early")
	}
	return fmt.Errorf("invalid JSON: %w", err)
}

func text(to *string, v any) error {
	s, ok := v.(string)
	if !ok {
		return errors.New("want a string")
	}
	*to = s
	return checkLength(s)
}

func stringList(to *[]string, v any) error {
	list, ok := v.([]string)
	if !ok {
		return errors.New("want a list")
	}
	*to = list
	for _, s := range list {
		if err := checkLength(s); err != nil {
			return err
		}
	}
	return nil
}

func checkLength(s string) error {
	if len(s) > maxName {
		return fmt.Errorf("string of %d bytes: want at most %d", len(s), maxName)
	}
	return nil
}

func number(to *int64, v any, low, high int64) error {
	s, ok := v.(string)
	if n, is := v.(json.Number); is {
		s, ok = n.String(), true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if !ok || err != nil || n < low || n > high {
		return fmt.Errorf("%s: want a whole number from %d to %d", clip(fmt.Sprint(v)), low, high)
	}
	*to = n
	return nil
}

func boolean(to *bool, v any) error {
	switch v {
	case true, "true":
		*to = true
	case false, "false":
		*to = false
	default:
		return errors.New("want true or false")
	}
	return nil
}

// clip quotes a part of a log for an error, at most 40 bytes of it.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:most]) + "…"
}
