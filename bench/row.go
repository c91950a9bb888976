package main

import (
	"fmt"
	"math"
)

// row is one line of the report: a figure of ours, next to that of a peer where
// there is one, and what we aim at.
type row struct {
	name string // what was measured, and under which load
	unit string
	ours []float64 // one value a round

	peerName string
	peer     []float64 // one value a round, from the same rounds; empty without a peer

	summary func([]float64) float64 // what stands for all rounds; median if nil
	aim     aim
}

// aim is a limit on our figure, or on its ratio to the peer's. The zero aim is
// none: the row is there to compare.
type aim struct {
	bound   bound
	limit   float64
	onRatio bool
}

type bound int

const (
	none bound = iota
	atMost
	atLeast
)

func ratioAtMost(x float64) aim  { return aim{atMost, x, true} }
func ratioAtLeast(x float64) aim { return aim{atLeast, x, true} }
func valueAtMost(x float64) aim  { return aim{atMost, x, false} }

func (a aim) String() string {
	sign := map[bound]string{atMost: "≤ ", atLeast: "≥ "}[a.bound]
	switch {
	case a.bound == none:
		return ""
	case a.onRatio:
		return sign + formatRatio(a.limit)
	default:
		return sign + formatValue(a.limit)
	}
}

// verdict is "reached", "missed", or empty where nothing is aimed at. Nothing
// measured is missed.
func (r row) verdict() string {
	got := r.value()
	if r.aim.onRatio {
		got = r.ratio()
	}
	switch {
	case r.aim.bound == none:
		return ""
	case r.aim.bound == atMost && got <= r.aim.limit, r.aim.bound == atLeast && got >= r.aim.limit:
		return "reached"
	default:
		return "missed"
	}
}

func (r row) summarize(values []float64) float64 {
	if r.summary == nil {
		return median(values)
	}
	return r.summary(values)
}

func (r row) value() float64     { return r.summarize(r.ours) }
func (r row) peerValue() float64 { return r.summarize(r.peer) }

// ratio is the summary of the ratios of single rounds, not the ratio of two
// summaries: what slows down both sides of a round cancels out. NaN without a
// peer.
func (r row) ratio() float64 { return r.summarize(ratios(r.ours, r.peer)) }

// cells are the row as it is printed.
func (r row) cells() []string {
	peer := ""
	if len(r.peer) > 0 {
		peer = fmt.Sprintf("%s %s", formatValue(r.peerValue()), r.peerName)
	}
	return []string{
		r.name, withUnit(formatValue(r.value()), r.unit), peer,
		formatRatio(r.ratio()), r.aim.String(), r.verdict(),
	}
}

// formatRatio writes two significant digits, and nothing where there is no
// ratio.
func formatRatio(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return formatSignificant(x, 2) + "x"
}

// formatValue writes three significant digits.
func formatValue(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return formatSignificant(x, 3)
}

// formatSignificant writes x with this many significant digits, never in
// scientific notation, and never cuts digits before the point.
func formatSignificant(x float64, digits int) string {
	if x == 0 {
		return "0"
	}
	before := int(math.Floor(math.Log10(math.Abs(x)))) + 1
	return fmt.Sprintf("%.*f", max(digits-before, 0), x)
}

func withUnit(value, unit string) string {
	if unit == "" {
		return value
	}
	return value + " " + unit
}
