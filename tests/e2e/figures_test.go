//go:build e2e

package e2e

import (
	"flag"
	"slices"
	"sync"
)

var writeFigures = flag.String("figures", "", "write what was measured to this `file`")

// figures is what tests have measured: by group and row, each time once.
var figures struct {
	mu   sync.Mutex
	rows map[string]map[string][]float64
}

// figure notes one measurement.
func figure(group, row string, value float64) {
	figures.mu.Lock()
	defer figures.mu.Unlock()
	if figures.rows == nil {
		figures.rows = map[string]map[string][]float64{}
	}
	if figures.rows[group] == nil {
		figures.rows[group] = map[string][]float64{}
	}
	figures.rows[group][row] = append(figures.rows[group][row], value)
}

// median of what was measured; it is never asked of nothing.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
