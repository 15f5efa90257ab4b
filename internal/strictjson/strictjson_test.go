package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/internal/strictjson"
)

type config struct {
	Cells uint8    `json:"cells"`
	Rate  uint64   `json:"rate"`
	Level int      `json:"level"`
	Share float64  `json:"share"`
	On    bool     `json:"on"`
	Name  string   `json:"name"`
	List  []string `json:"list"`
}

func TestErrorsNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{"cells":256}`:         "cells: 256: want a whole number from 0 to 255",
		`{"cells":"many"}`:      `cells: "many": want a whole number from 0 to 255`,
		`{"rate":-1}`:           "rate: -1: want a whole number, not negative",
		`{"level":1.5}`:         "level: 1.5: want a whole number",
		`{"share":"half"}`:      `share: "half": want a number`,
		`{"on":1}`:              "on: 1: want true or false",
		`{"name":1}`:            "name: 1: want a text",
		`{"list":"a"}`:          `list: "a": want a list`,
		`{"name":null}`:         "name: null: want a value",
		`{"on":true,"on":true}`: "on: given twice",
		`{"On":true}`:           `json: unknown field "On": did you mean "on"?`,
		`{"off":true}`:          `json: unknown field "off": want one of cells, level, list, name, on, rate, share`,
		`[1]`:                   "want a JSON object",
		`null`:                  "want a JSON object",
		`7`:                     "want a JSON object",
		`{"on":true} {}`:        "text after the JSON object",
		`{"on":`:                "JSON ends in the middle",
	} {
		require.EqualError(t, strictjson.Decode([]byte(text), new(config)), want, text)
	}
}

func TestFieldsThatAreNotGivenStay(t *testing.T) {
	c := config{Cells: 3, Name: "a"}
	for _, text := range []string{"", " \n", "{}", `{"list":null}`, `{"rate":7}`} {
		require.NoError(t, strictjson.Decode([]byte(text), &c), text)
	}
	require.Equal(t, config{Cells: 3, Name: "a", Rate: 7}, c)
}
