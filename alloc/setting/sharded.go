package setting

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/strictjson"
)

// ShardedConfig describes shards of one strategy, each with a lock; see [wrap.Sharded]. The zero
// value of a field means its default.
type ShardedConfig struct {
	// Of is the name of the strategy of each shard, for [Catalogue.Lookup].
	Of string `json:"of" doc:"strategy of each shard"`
	// Config holds fields of the strategy's Config that replace fields of the preset.
	Config json.RawMessage `json:"config,omitempty" doc:"its settings"`
	// Shards is the number of shards; default 4. A strategy that takes its whole limit at once has
	// an equal part of the limit in each shard.
	Shards int `json:"shards" doc:"shards, each with a lock" grid:"1,2,4,8"`
	// By selects the requests that share a shard: the requests of a "thread", the default, or of a
	// "stream".
	By string `json:"by" doc:"what shares a shard: thread or stream" grid:"thread,stream"`
}

// maxShards bounds the locks that one call may take.
const maxShards = 1024

// shardedSemantics is the version of the placements that [wrap.Sharded] decides: the shard of a
// request, and the device that the shards share.
const shardedSemantics = 1

// choices are the values of ShardedConfig.By.
var choices = map[string]wrap.Choice{"thread": wrap.ByThread, "stream": wrap.ByStream}

// WithDefaults returns c with every default filled in. It fails with an error that names the first
// bad field. The strategy may be missing.
func (c ShardedConfig) WithDefaults() (ShardedConfig, error) {
	c.Shards, c.By = cmp.Or(c.Shards, 4), cmp.Or(c.By, "thread")
	switch {
	case c.Shards < 1 || c.Shards > maxShards:
		return c, fmt.Errorf("sharded: shards %d: want 1 to %d", c.Shards, maxShards)
	case choices[c.By] == nil:
		return c, fmt.Errorf("sharded: by %q: want thread or stream", c.By)
	}
	return c, nil
}

// Sharded returns the catalogue entry "sharded" for the strategies of c: "sharded:tlsf" is tlsf in
// shards, and its Config is a [ShardedConfig]. Its semantics have the strategy's, as "1,tlsf=3".
func Sharded(c Catalogue) Spec {
	return Spec{
		Name:  "sharded",
		Doc:   "a strategy in shards by thread or stream, each behind a lock: sharded:NAME",
		Knobs: knobsOf[ShardedConfig](), Semantics: shardedSemantics,
		Given: func(name string) (string, error) {
			fields, err := json.Marshal(map[string]string{"of": name})
			return string(fields), err
		},
		setup: func(_ Spec, name string, preset, override json.RawMessage) (Setup, error) {
			var s ShardedConfig
			for _, layer := range []json.RawMessage{preset, override} {
				if err := strictjson.Decode(layer, &s); err != nil {
					return Setup{}, fmt.Errorf("configuration of %s: %w", name, err)
				}
			}
			s, err := s.WithDefaults()
			if err != nil {
				return Setup{}, err
			}
			if s.Of == "" {
				return Setup{}, errors.New(`sharded: of: want the name of a strategy, as in "sharded:tlsf"`)
			}
			inner, err := c.Lookup(s.Of, s.Config)
			if err != nil {
				return Setup{}, fmt.Errorf("%s: %w", name, err)
			}
			return inner.Sharded(name, s.Shards, s.By)
		},
	}
}

// Sharded returns the setup of n shards of s, by "thread" or "stream". Its semantics are "" if the
// semantics of s are.
func (s Setup) Sharded(name string, n int, by string) (Setup, error) {
	c := ShardedConfig{Of: s.Name, Shards: n, By: by}
	var err error
	if c.Config, err = json.Marshal(s.Config); err != nil {
		return Setup{}, fmt.Errorf("configuration of %s: %w", s.Name, err)
	}
	if c, err = c.WithDefaults(); err != nil {
		return Setup{}, err
	}
	return s.sharded(name, c), nil
}

// sharded returns the setup of shards of s with a configuration that is valid.
func (s Setup) sharded(name string, c ShardedConfig) Setup {
	shard := func(inner Setup) Setup {
		c.Config, _ = json.Marshal(inner.Config) // the Config of the same strategy could be encoded
		return inner.sharded(name, c)
	}
	var semantics string
	if s.Semantics != "" {
		semantics = fmt.Sprintf("%d,%s=%s", shardedSemantics, s.Name, s.Semantics)
	}
	return Setup{
		Name: name, Config: c, Semantics: semantics, Promises: shardedPromises(s.Promises), Preallocates: s.Preallocates,
		build: func(src device.Source) (alloc.Strategy, error) {
			return wrap.Sharded(src, c.Shards, choices[c.By], s.build)
		},
		forCapacity: func(n device.Size) Setup {
			if s.Preallocates {
				n /= device.Size(c.Shards)
			}
			return shard(s.ForCapacity(n))
		},
		reduced: func(d Demand) Setup { return shard(s.Reduced(d)) },
	}
}

// shardedPromises returns the promises of one shard that hold for all of them: not those about the
// order in which chunks are searched or returned, because requests choose their shards first.
func shardedPromises(p promise.Set) promise.Set {
	p.SearchOrder, p.Places, p.ReturnOrder, p.ExactPlacer, p.Stamped = nil, nil, nil, false, false
	p.Except = append(slices.Clone(p.Except),
		promise.Exception{Invariant: "I68", Reason: "a shard preallocates its part of the limit with its own first request"},
		promise.Exception{Invariant: "I72", Reason: "each shard that grows has the whole limit, and their limits are added"})
	return p
}
