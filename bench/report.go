package main

import (
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
)

// report is a run's rows, as text and as a page of the documentation.
type report struct {
	conditions string // what the numbers depend on, in one sentence
	figures    []figure
	results    *results
}

var header = []string{"figure", "ours", "peer", "ratio", "aim", ""}

func newReport(e *bench, chosen []figure) report {
	return report{
		conditions: fmt.Sprintf("%s/%s, %d CPUs shared by Redis and all clients; Redis %s without persistence, over TCP on loopback; %s; rounds: %d; load average before: %s.",
			runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), e.redisVersion, runtime.Version(), e.rounds, e.loadBefore),
		figures: chosen,
		results: &e.results,
	}
}

// rows are those of all figures, in order.
func (r report) rows() []row {
	var rows []row
	for _, f := range r.figures {
		if f.rows != nil {
			rows = append(rows, f.rows(r.results)...)
		}
	}
	return rows
}

// text is the report for a terminal.
func (r report) text() string {
	return "\n" + r.conditions + "\n" + textTable(header, cellsOf(r.rows())) + textTable(costHeader, costCells(r.results))
}

// textTable aligns the columns; a table without rows is left out.
func textTable(header []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{nil, header}, rows...) {
		_, _ = table.Write([]byte(strings.Join(cells, "\t") + "\n"))
	}
	_ = table.Flush()
	return b.String()
}

func cellsOf(rows []row) [][]string {
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = r.cells()
	}
	return out
}
