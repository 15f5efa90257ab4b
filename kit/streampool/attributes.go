package streampool

import "github.com/vramyard/vramyard/device"

// Attribute returns an attribute. It fails with [device.ErrInvalid] if the attribute is unknown.
func (p *Pool) Attribute(a device.PoolAttribute) (device.Size, error) {
	stats := p.Stats()
	switch a {
	case device.ReleaseThreshold:
		return p.Config.Threshold, nil
	case device.ReservedNow:
		return stats.Reserved, nil
	case device.ReservedHigh:
		return stats.ReservedHigh, nil
	case device.UsedNow:
		return stats.Used, nil
	case device.UsedHigh:
		return stats.UsedHigh, nil
	}
	if f := p.flag(a); f != nil {
		if *f {
			return 1, nil
		}
		return 0, nil
	}
	return 0, device.ErrInvalid
}

// flag returns the field of a boolean attribute, nil for another attribute.
func (p *Pool) flag(a device.PoolAttribute) *bool {
	switch a {
	case device.FollowEvents:
		return &p.Config.FollowEvents
	case device.ReuseFinished:
		return &p.Config.ReuseFinished
	case device.InsertWaits:
		return &p.Config.InsertWaits
	}
	return nil
}

// SetAttribute changes a setting, or resets a high-water mark. It fails with [device.ErrInvalid] if
// the attribute cannot have the value.
func (p *Pool) SetAttribute(a device.PoolAttribute, v device.Size) error {
	f := p.flag(a)
	high := a == device.ReservedHigh || a == device.UsedHigh
	switch {
	case a == device.ReleaseThreshold:
		p.Config.Threshold = v
	case high && v == 0:
		p.ResetHighs(a == device.ReservedHigh, a == device.UsedHigh)
	case f != nil && v <= 1:
		*f = v == 1
	default:
		return device.ErrInvalid
	}
	return nil
}
