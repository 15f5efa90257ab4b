package chart

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// Axis is one of the two axes of a chart.
type Axis struct {
	Title string  // with the unit
	Low   float64 // value at the start
	High  float64 // value at the end, above Low
	Log   bool    // logarithmic: both ends above 0
	Ticks []Tick  // unlabelled ticks are minor
	Names bool    // ticks are row names, so no grid lines
}

// FromZero returns a linear axis from 0 to beyond high, with round ticks.
func FromZero(title string, high float64) Axis { return scaled(title, high, 1, "") }

// Bytes returns a linear axis of bytes from 0 to beyond high, in the largest binary unit that needs
// at least one digit.
func Bytes(title string, high float64) Axis {
	unit, name := 1.0, "B"
	for _, u := range []struct {
		size device.Size
		name string
	}{{device.KiB, "KiB"}, {device.MiB, "MiB"}, {device.GiB, "GiB"}, {device.GiB << 10, "TiB"}} {
		if high >= float64(u.size) {
			unit, name = float64(u.size), u.name
		}
	}
	return scaled(title, high, unit, name)
}

// Counts returns a linear axis of counts from 0 to high.
func Counts(title string, high float64) Axis {
	unit, name := 1.0, ""
	switch {
	case high >= 1e7:
		unit, name = 1e6, "millions"
	case high >= 1e4:
		unit, name = 1e3, "thousands"
	}
	a := scaled(title, high, unit, name)
	a.High = max(high, 1) // nothing follows the last value
	return a
}

// Percent returns a linear axis of shares from 0 to beyond high, at most 100 % unless high is
// above.
func Percent(title string, high float64) Axis {
	a := scaled(title, high, 0.01, "%")
	if high <= 1 && a.High > 1 {
		a.High = 1
		a.Ticks = slices.DeleteFunc(a.Ticks, func(t Tick) bool { return t.Value > 1.001 })
	}
	return a
}

// scaled returns a linear axis from 0 to beyond high, with ticks at round multiples of unit.
func scaled(title string, high, unit float64, name string) Axis {
	if name != "" {
		title += " (" + name + ")"
	}
	if !(high > 0) {
		high = unit
	}
	top := high / unit
	step := math.Pow(10, math.Floor(math.Log10(top)))
	for top/step < 3 {
		step /= 2
	}
	for top/step > 7 {
		step *= 2
	}
	a := Axis{Title: title, High: math.Ceil(top/step*1.02) * step * unit}
	for i := 0; float64(i)*step <= a.High/unit*1.001; i++ {
		v := float64(i) * step
		a.Ticks = append(a.Ticks, Tick{Value: v * unit, Label: short(v)})
	}
	return a
}

// Between returns a linear axis that contains two values, with round ticks, and need not start at
// 0.
func Between(title string, low, high float64) Axis {
	span := max(high-low, 1e-6*math.Abs(high), 1e-9)
	step := math.Pow(10, math.Floor(math.Log10(span)))
	for span/step < 3 {
		step /= 2
	}
	a := Axis{Title: title, Low: low - 0.03*span, High: high + 0.03*span}
	for k := math.Ceil(a.Low/step - 1e-6); k*step <= a.High; k++ {
		v := k*step + 0 // turns -0 into 0
		a.Ticks = append(a.Ticks, Tick{Value: v, Label: short(v)})
	}
	return a
}

// Log returns a logarithmic axis that contains two values above 0, with labels at powers of ten,
// and in between if those are few.
func Log(title string, low, high float64) Axis {
	a := Axis{Title: title, Low: low / 1.15, High: high * 1.15, Log: true}
	first := int(math.Floor(math.Log10(a.Low)))
	last := int(math.Ceil(math.Log10(a.High)))
	few := math.Log10(a.High/a.Low) < 2.5
	every := math.Log10(a.High/a.Low) < 0.75 // below a factor of six, 2 and 5 alone would leave one label or none
	for e := first; e <= last; e++ {
		for m := 1; m <= 9; m++ {
			v := float64(m) * math.Pow(10, float64(e))
			if v < a.Low || v > a.High {
				continue
			}
			t := Tick{Value: v}
			if m == 1 || few && (m == 2 || m == 5) || every {
				t.Label = short(v)
				if v >= 1e3 && a.High >= 1e4 { // like its neighbours
					t.Label = power(v)
				}
			}
			a.Ticks = append(a.Ticks, t)
		}
	}
	return a
}

// Rows returns an axis of named rows, the first on top. Row i is at [Row].
func Rows(names []string) Axis {
	a := Axis{Low: -0.6, High: float64(len(names)) - 0.4, Names: true}
	for i, n := range names {
		a.Ticks = append(a.Ticks, Tick{Value: Row(i, len(names)), Label: n})
	}
	slices.Reverse(a.Ticks)
	return a
}

// Row returns the position of row i of n.
func Row(i, n int) float64 { return float64(n - 1 - i) }

// short formats a number for a tick.
func short(v float64) string {
	if v >= 1e4 {
		return power(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// power formats a number with a power of ten.
func power(v float64) string {
	e := math.Floor(math.Log10(v) + 1e-9)
	return strconv.FormatFloat(v/math.Pow(10, e), 'g', 3, 64) + "e" + units.Fixed(e, 0)
}

// set configures an axis of the plot library.
func (a *Axis) set(to *plot.Axis) {
	to.Min, to.Max, to.Tick.Marker = a.Low, a.High, plot.ConstantTicks(a.Ticks)
	if a.Log {
		to.Scale = plot.LogScale{}
	}
}

// at returns the value at a fraction of the axis's length.
func (a *Axis) at(share float64) float64 {
	if a.Log {
		return a.Low * math.Pow(a.High/a.Low, share)
	}
	return a.Low + share*(a.High-a.Low)
}

// Tick is a mark on an axis.
type Tick = plot.Tick
