package main

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// sample is one number as it was measured: nothing that is printed has another
// source.
type sample struct {
	metric  string // what and in which unit, such as handoff_p50_ms
	who     string // who was measured: ours, or a peer
	setting string // under which load, such as "100 waiters"
	round   int    // from 1; within one round all contenders ran once
	value   float64
}

// results collects samples in the order in which they were measured.
type results struct{ samples []sample }

func (r *results) add(metric, who, setting string, round int, value float64) {
	r.samples = append(r.samples, sample{metric, who, setting, round, value})
}

// series are the values of one metric, one a round in the order of rounds.
func (r *results) series(metric, who, setting string) []float64 {
	var out []float64
	for _, s := range r.samples {
		if s.metric == metric && s.who == who && s.setting == setting {
			out = append(out, s.value)
		}
	}
	return out
}

// settings are those under which a metric was measured.
func (r *results) settings(metric string) []string {
	var out []string
	for _, s := range r.samples {
		if s.metric == metric && !slices.Contains(out, s.setting) {
			out = append(out, s.setting)
		}
	}
	return out
}

// writeCSV writes every sample, with a header line.
func (r *results) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	records := [][]string{{"metric", "who", "setting", "round", "value"}}
	for _, s := range r.samples {
		value := strconv.FormatFloat(s.value, 'g', 6, 64)
		records = append(records, []string{s.metric, s.who, s.setting, strconv.Itoa(s.round), value})
	}
	return out.WriteAll(records)
}
