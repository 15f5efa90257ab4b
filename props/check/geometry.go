package check

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
)

const (
	// wideLimit is the highest limit that a strategy keeps in a test. A sequence of
	// a hundred requests whose sizes are spread evenly over the powers of two holds a few
	// times its largest request, so it seldom meets a limit much above that.
	wideLimit = 64 * device.MiB
	// fitLimit replaces wider limits.
	fitLimit = 16 * device.MiB
	// mostRegions is the capacity of a device in regions of the first one's size, so that
	// a strategy without a limit grows several times before it runs out.
	mostRegions = 8
	// finest is the alignment of regions: the coarsest quantum of the strategies here. A real
	// device aligns more coarsely; with a fine one regions are adjacent and start at odd addresses.
	finest = 256
)

// Subjects returns the subjects of one catalogue entry: the strategy in its configuration on
// simulated devices that are small for it, because most mistakes show when memory runs out.
//
// A strategy with a limit of its own is checked on two devices, one of three quarters of the
// limit, which refuses first, and one of three halves, on which the limit is met first. A
// limit above 64 MiB is lowered to 16 MiB, which a short sequence can reach, or to the next of
// 64 MiB, 256 MiB and so on with which a byte is granted. A strategy without limit is checked on a
// device with room for eight regions of the size of its first, in pages of the device if it charges
// those; generated sizes follow the device, so that regions of a gigabyte are used up as soon as
// regions of a kilobyte. A request of one byte shows the size. If a size around which the strategy
// decides differently fits this device, but the region that it gets does not, the strategy is also
// checked on a second device, with room for eight such regions.
//
// A strategy that uses hints of the program ([props.Subject.Learns]) is checked on the
// same devices once more, misled.
//
// All devices are like the given one but for their capacity. The zero one is the default device
// whose regions may start at every 256 bytes.
func Subjects(s setting.Setup, like sim.Config) ([]props.Subject, error) {
	if like == (sim.Config{}) {
		like.Align = finest
	}
	like.Capacity = 0
	limit, region, err := measure(s, like, 1)
	if err != nil {
		return nil, err
	}
	wide := limit
	for fit := fitLimit; wide > wideLimit && fit < wide; fit *= 4 {
		s = s.ForCapacity(fit)
		if limit, region, err = measure(s, like, 1); err != nil {
			return nil, err
		}
		if limit == 0 || region != 0 {
			break
		}
	}
	if limit == 0 {
		all := []props.Subject{on(s, mostRegions*region, like)}
		if largest := largestRegion(s, like, mostRegions*region); largest > mostRegions*region {
			all = append(all, on(s, mostRegions*largest, like))
		}
		return withMisled(all), nil
	}
	return withMisled([]props.Subject{on(s, limit-limit/4, like), on(s, limit+limit/2, like)}), nil
}

// withMisled appends the subjects of a strategy once more, misled, if it learns.
func withMisled(all []props.Subject) []props.Subject {
	if all[0].Learns() {
		for _, s := range all {
			all = append(all, s.Misled())
		}
	}
	return all
}

// on returns the subject of a setup on a device of n bytes.
func on(s setting.Setup, n device.Size, like sim.Config) props.Subject {
	like.Capacity = device.AlignUp(n, max(finest, like.Charge))
	subject := props.SubjectOfSetup(s, like)
	subject.Name += "@" + subject.Device.Capacity.String()
	return subject
}

// largestRegion returns the largest charge for one request of a size just below, at or just above
// a boundary at which the strategy decides differently. Sizes above most are skipped.
func largestRegion(s setting.Setup, like sim.Config, most device.Size) (largest device.Size) {
	for _, b := range s.Promises.Boundaries {
		for _, n := range [...]device.Size{b - 1, b, b + 1} {
			if n == 0 || n > most {
				continue
			}
			if _, region, err := measure(s, like, n); err == nil { // it may refuse such a size
				largest = max(largest, region)
			}
		}
	}
	return largest
}

// measure builds the strategy on a device without bounds and returns its own limit, 0 for none,
// and the bytes that it is charged for a first request of n, 0 if the limit leaves no room for
// that.
//
// Precondition: like has no capacity.
func measure(s setting.Setup, like sim.Config, n device.Size) (limit, region device.Size, err error) {
	err = props.Guarded(0, func(func()) (err error) {
		limit, region, err = measureOne(s, like, n)
		return err
	})
	if v, ok := errors.AsType[*props.Violation](err); ok {
		err = fmt.Errorf("%s: %w\n%s", s.Name, v, v.Stack)
	}
	return limit, region, err
}

func measureOne(s setting.Setup, like sim.Config, n device.Size) (limit, region device.Size, err error) {
	dev, err := sim.New(like)
	if err != nil {
		return 0, 0, err
	}
	a, err := s.New(dev)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer a.Close() // the device is thrown away with it
	limit = a.Stats().Limit
	switch _, err := a.Alloc(alloc.Request{Size: n}); {
	case err == nil:
		return limit, dev.Usage().Charged, nil
	case limit != 0:
		return limit, 0, nil
	default:
		return 0, 0, fmt.Errorf("%s: %d bytes on an empty device: %w", s.Name, uint64(n), err)
	}
}
