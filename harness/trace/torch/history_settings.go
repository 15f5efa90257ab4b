package torch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// confKeys are the settings that contain all others as the user wrote them.
var confKeys = [...]string{"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}

// Conf returns the recorded settings in the form of PYTORCH_CUDA_ALLOC_CONF. If the file lacks that
// string, Conf builds it from the settings that affect placement.
func Conf(settings []Setting) string {
	text := writtenConf(settings)
	if v, _ := setting(settings, expandableKey); v == "True" {
		text = withExpandable(text, v) // it may be left from an earlier call
	}
	return text
}

func writtenConf(settings []Setting) string {
	for _, key := range confKeys {
		if v, ok := setting(settings, key); ok && v != "" {
			return v
		}
	}
	var parts []string
	if v, ok := setting(settings, "max_split_size"); ok {
		if n, err := strconv.ParseUint(v, 10, 63); err == nil && n > 0 && n%(1<<20) == 0 {
			parts = append(parts, fmt.Sprintf("max_split_size_mb:%d", n>>20))
		}
	}
	if v, ok := setting(settings, "garbage_collection_threshold"); ok {
		if x, err := strconv.ParseFloat(v, 64); err == nil && x > 0 && x < 1 {
			parts = append(parts, "garbage_collection_threshold:"+v)
		}
	}
	return strings.Join(parts, ",")
}

// expandableKey is the setting, and the option of that name, which keeps its value until a call
// names it.
const expandableKey = "expandable_segments"

// withExpandable adds the option with a value to settings that do not name it.
func withExpandable(text, value string) string {
	switch {
	case strings.Contains(text, expandableKey):
		return text
	case text != "":
		text += ","
	}
	return text + expandableKey + ":" + value
}

func setting(settings []Setting, key string) (string, bool) {
	for _, s := range settings {
		if s.Key == key {
			return s.Value, true
		}
	}
	return "", false
}

// Additional settings in snapshots written by a replay of this project, which identify the replay.
const (
	KeyReplayed       = "vramyard_strategy"     // name and preset of the strategy
	KeyReplayedConfig = "vramyard_config"       // its configuration, as JSON
	KeyReplayedTrace  = "vramyard_trace"        // name of the trace
	KeyReplayedHash   = "vramyard_trace_sha256" // hash of its decompressed file
)

// Replayed returns the name and preset of the strategy whose replay wrote the snapshot. It returns
// "" for a recording.
func Replayed(settings []Setting) string {
	name, _ := setting(settings, KeyReplayed)
	return name
}

// Config returns the recorded settings as a configuration of the strategy caching. For a replay it
// is the original configuration without memory_fraction, because the file lacks the device's
// capacity.
func Config(settings []Setting) json.RawMessage {
	fields := map[string]any{}
	if text, ok := setting(settings, KeyReplayedConfig); ok && json.Unmarshal([]byte(text), &fields) == nil &&
		fields["conf"] != nil {
		delete(fields, "memory_fraction")
	} else {
		fields = map[string]any{"conf": Conf(settings)}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // texts always marshal
	}
	return raw
}
