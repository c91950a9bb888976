//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var writeFigures = flag.String("figures", "", "write what was measured to this `file`")

// measuring tells that the run is for its figures. Others check, for which a few
// samples of each thing do.
func measuring() bool { return *writeFigures != "" }

// samples is how many of up to n samples this run takes.
func samples(n int) int {
	if measuring() {
		return n
	}
	return min(n, 3)
}

// figures is what tests have measured.
var figures struct {
	mu   sync.Mutex
	rows []figureRow
}

// figureRow is one thing that was measured, each time once.
type figureRow struct {
	group, name, unit string
	values            []float64
}

// The groups, in the order in which they are printed.
var figureGroups = []string{
	"From one app to the next",
	"Loss: when the app was dead, as a part of the TTL since its last renewal",
	"The same where it is not promised",
	"What a pod costs",
	"What pods cost their node",
}

const (
	handover = iota
	loss
	notPromised
	cost
	nodeCosts
)

// figure notes one measurement.
func figure(group int, name, unit string, value float64) {
	figures.mu.Lock()
	defer figures.mu.Unlock()
	for i := range figures.rows {
		if r := &figures.rows[i]; r.group == figureGroups[group] && r.name == name {
			r.values = append(r.values, value)
			return
		}
	}
	figures.rows = append(figures.rows, figureRow{figureGroups[group], name, unit, []float64{value}})
}

// figureValues is what was measured so far.
func figureValues(name string) []float64 {
	figures.mu.Lock()
	defer figures.mu.Unlock()
	for _, r := range figures.rows {
		if r.name == name {
			return r.values
		}
	}
	return nil
}

// tell prints all figures, and writes them down if asked to.
func (c *cluster) tell() error {
	text := c.figuresPage()
	fmt.Print(text)
	if *writeFigures == "" {
		return nil
	}
	return os.WriteFile(*writeFigures, []byte(text), 0o644)
}

func (c *cluster) figuresPage() string {
	var b strings.Builder
	b.WriteString("# Figures of a real node\n\n")
	b.WriteString("Written by `make e2e` with `-figures`; do not edit. The machine is small and shared: read the ratios.\n\n")
	fmt.Fprintf(&b, "%s. %s\n", time.Now().UTC().Format(time.DateOnly), c.versions())
	for _, group := range figureGroups {
		rows := slices.DeleteFunc(slices.Clone(figures.rows), func(r figureRow) bool { return r.group != group })
		if len(rows) == 0 {
			continue
		}
		slices.SortStableFunc(rows, func(a, b figureRow) int { return strings.Compare(a.name, b.name) })
		fmt.Fprintf(&b, "\n## %s\n\n| | median | least | most | times |\n|---|---|---|---|---|\n", group)
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %d |\n", r.name,
				r.show(median(r.values)), r.show(slices.Min(r.values)), r.show(slices.Max(r.values)), len(r.values))
		}
	}
	return b.String()
}

func (r figureRow) show(value float64) string {
	if r.unit == "" {
		return fmt.Sprintf("%.2f", value)
	}
	if r.unit == "s" {
		return fmt.Sprintf("%.3f s", value)
	}
	return fmt.Sprintf("%.1f %s", value, r.unit)
}

// versions is what the figures hold for.
func (c *cluster) versions() string {
	nodes, err := c.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		return "Versions unknown."
	}
	info, cpu := nodes.Items[0].Status.NodeInfo, nodes.Items[0].Status.Capacity.Cpu()
	return fmt.Sprintf("Kubelet %s, %s, Linux %s, %s CPUs.", info.KubeletVersion, info.ContainerRuntimeVersion, info.KernelVersion, cpu)
}

// median of what was measured; it is never asked of nothing.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
