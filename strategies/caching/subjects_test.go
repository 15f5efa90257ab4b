package caching_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/caching"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	const grows = "expandable_segments:True"
	return []props.Subject{
		subject("default", caching.Config{}, 64),
		subject("split", caching.Config{Conf: "max_split_size_mb:32,max_non_split_rounding_mb:24"}, 256),
		subject("split-2.6-mended", caching.Config{Rules: caching.Rules26, Conf: "max_split_size_mb:21", Mended: true}, 128),
		subject("collect", caching.Config{Conf: "garbage_collection_threshold:0.4", MemoryFraction: 0.9}, 128),
		subject("collect-mended", caching.Config{Conf: "garbage_collection_threshold:0.3", Mended: true}, 96),
		subject("whole-2.6", caching.Config{Rules: caching.Rules26, Conf: "garbage_collection_threshold:0.5",
			MemoryFraction: 1}, 96),
		// The device adds a MiB to a segment of 13.
		subject("segments", caching.Config{
			Conf: "large_segment_size_mb:13,max_split_size_mb:16,roundup_power2_divisions:[1:8,4:2,>:4]"}, 96),
		subject("births", caching.Config{Rules: caching.Rules212}, 64),
		subject("segment-order", caching.Config{Rules: caching.Rules213, Conf: "max_split_size_mb:21"}, 128),
		subject("grows-births", caching.Config{Rules: caching.Rules212, Conf: grows}, 64),
		subject("phase", caching.Config{Conf: "expandable_segments:True@..never,max_split_size_mb:21@..never"}, 64),
		subject("grows", caching.Config{Conf: grows}, 64),
		subject("grows-2.6-limit", caching.Config{Rules: caching.Rules26, Conf: grows, MemoryFraction: 0.5}, 128),
		subject("grows-split-mended", caching.Config{Conf: grows + ",max_split_size_mb:24,garbage_collection_threshold:0.5",
			MemoryFraction: 0.9, Mended: true}, 96),
		subject("grows-segments", caching.Config{Conf: grows + ",large_segment_size_mb:12,roundup_power2_divisions:4",
			Mended: true}, 64),
	}
}

// subject is the allocator over a device of some MiB that charges whole pages, as a card does.
func subject(name string, c caching.Config, mib device.Size) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	const page = 2 * device.MiB
	on := sim.Config{Capacity: mib * device.MiB, Align: page, Round: page, Charge: page}
	return props.SubjectOf(name, caching.New, c, on, c.Promises())
}
