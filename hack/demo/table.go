package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// row is what the table says about a pod.
type row struct {
	pod      string
	phase    phase
	state    *lockagent.State // nil if its agent does not answer
	left     time.Duration    // until Redis forgets its hold, if nobody renews that any more
	lastLine string           // of its app
}

// table lays rows out in columns. It is indented like the text around it.
func table(rows []row, now time.Time) []string {
	cells := [][]string{{bold.in("POD"), bold.in("LOCK"), bold.in("TOKEN"), bold.in("LEASE LEFT"), bold.in("ITS APP SAYS")}}
	for _, r := range rows {
		cells = append(cells, r.cells(now))
	}
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			widths[i] = max(widths[i], textWidth(c))
		}
	}
	var lines []string
	for _, line := range cells {
		var b strings.Builder
		for i, c := range line {
			b.WriteString("   " + c + strings.Repeat(" ", widths[i]-textWidth(c)))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

func (r row) cells(now time.Time) []string {
	says := r.lastLine
	if says != "" && r.phase != phaseRunning && r.phase != phaseStopping {
		says = dim.in(says)
	}
	if r.state == nil {
		return []string{r.pod, dim.in(string(r.phase)), "", seconds(r.left), says}
	}
	if !r.state.Held || r.state.ExpiresAt == nil {
		return []string{r.pod, describe(*r.state), "", "", says}
	}
	left := time.Time(*r.state.ExpiresAt).Sub(now)
	return []string{r.pod, describe(*r.state), strconv.FormatInt(r.state.Token, 10), seconds(left), says}
}

func seconds(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// describe puts an agent's state into a few words.
func describe(s lockagent.State) string {
	switch {
	case s.Held && s.Degraded:
		return yellow.in("holds, renewal failing")
	case s.Held:
		return green.in("holds")
	case s.State == lockagent.Waiting && s.Error != nil:
		return red.in("waits: " + string(s.Error.Code))
	case s.State == lockagent.Waiting:
		return yellow.in("waits")
	default:
		return yellow.in(string(s.State))
	}
}
