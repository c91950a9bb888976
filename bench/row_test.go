package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRowCells(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		row  row
		want []string
	}{
		"a ratio within its aim": {
			row{name: "p50", unit: "ms", ours: []float64{0.3}, peerName: "peer", peer: []float64{1.5}, aim: ratioAtMost(0.3)},
			[]string{"p50", "0.300 ms", "1.50 peer", "0.20x", "≤ 0.30x", "reached"},
		},
		"a ratio beyond its aim": {
			row{name: "p50", unit: "ms", ours: []float64{0.6}, peerName: "peer", peer: []float64{1.5}, aim: ratioAtMost(0.3)},
			[]string{"p50", "0.600 ms", "1.50 peer", "0.40x", "≤ 0.30x", "missed"},
		},
		"a ratio that is to be high": {
			row{name: "pairs", unit: "/s", ours: []float64{12345}, peerName: "bare", peer: []float64{12345}, aim: ratioAtLeast(0.8)},
			[]string{"pairs", "12345 /s", "12345 bare", "1.0x", "≥ 0.80x", "reached"},
		},
		"the median ratio of rounds, not the ratio of medians": {
			row{name: "p50", ours: []float64{1, 10, 100}, peerName: "peer", peer: []float64{2, 5, 400}, aim: ratioAtMost(1)},
			[]string{"p50", "10.0", "5.00 peer", "0.50x", "≤ 1.0x", "reached"},
		},
		"a value that one round exceeds, where each must meet the aim": {
			row{name: "loss", unit: "TTL", ours: []float64{0.8, 0.91, 0.8}, summary: worst, aim: valueAtMost(0.9)},
			[]string{"loss", "0.910 TTL", "", "", "≤ 0.900", "missed"},
		},
		"no aim": {
			row{name: "rss", unit: "MB", ours: []float64{7}},
			[]string{"rss", "7.00 MB", "", "", "", ""},
		},
		"nothing measured reaches no aim": {
			row{name: "rss", unit: "MB", aim: valueAtMost(8)},
			[]string{"rss", "- MB", "", "", "≤ 8.00", "missed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.row.cells()); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		value     float64
		wantRatio string
		wantValue string
	}{
		"small":              {0.03456, "0.035x", "0.0346"},
		"below one":          {0.5, "0.50x", "0.500"},
		"rounds up to one":   {0.9996, "1.00x", "1.000"},
		"one":                {1, "1.0x", "1.00"},
		"three digits":       {123.4, "123x", "123"},
		"digits are not cut": {98765.4, "98765x", "98765"},
		"zero":               {0, "0x", "0"},
		"nothing":            {math.NaN(), "", "-"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := []string{formatRatio(tc.value), formatValue(tc.value)}
			if diff := cmp.Diff([]string{tc.wantRatio, tc.wantValue}, got); diff != "" {
				t.Errorf("ratio, value (-want +got):\n%s", diff)
			}
		})
	}
}
