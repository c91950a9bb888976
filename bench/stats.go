package main

import (
	"math"
	"slices"
	"time"
)

// percentile is the nearest-rank percentile: the smallest value that at least
// p percent of the values do not exceed. p is in (0, 100]. NaN without values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// median is the middle value, or the mean of the two in the middle. NaN
// without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// worst is the greatest value, for aims that each single run must meet. NaN
// without values.
func worst(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

// ratios divides a by b round by round: both sides of a ratio come from the
// same few seconds of the same machine. Rounds that only one side has are left
// out.
func ratios(a, b []float64) []float64 {
	n := min(len(a), len(b))
	out := make([]float64, n)
	for i := range n {
		out[i] = a[i] / b[i]
	}
	return out
}

// milliseconds converts for the statistics, which know no units.
func milliseconds(ds []time.Duration) []float64 {
	out := make([]float64, len(ds))
	for i, d := range ds {
		out[i] = float64(d) / float64(time.Millisecond)
	}
	return out
}
