package main

import (
	"fmt"
	"io"
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
		conditions: fmt.Sprintf("%s/%s, %d CPUs shared by Redis and all clients; Redis %s without persistence, over TCP on loopback; %s; rounds: %d.",
			runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), e.redisVersion, runtime.Version(), e.rounds),
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

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", r.conditions)
	printTable(w, header, cellsOf(r.rows()))
	printTable(w, costHeader, costCells(r.results))
}

// printTable aligns the columns; a table without rows is left out.
func printTable(w io.Writer, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{header}, rows...) {
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush()
}

func cellsOf(rows []row) [][]string {
	out := make([][]string, len(rows))
	for i, r := range rows {
		out[i] = r.cells()
	}
	return out
}
