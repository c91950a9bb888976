package main

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100) // 100 down to 1: the order must not matter
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	cases := map[string]struct {
		values []float64
		p      float64
		want   float64
	}{
		"the 50th of a hundred":                     {hundred, 50, 50},
		"the 99th of a hundred is not the greatest": {hundred, 99, 99},
		"the 100th is the greatest":                 {hundred, 100, 100},
		"a rank between two is rounded up":          {[]float64{1, 2, 3}, 50, 2},
		"the 99th of three is the greatest":         {[]float64{1, 2, 3}, 99, 3},
		"a tiny percentage is the smallest":         {[]float64{1, 2, 3}, 0.1, 1},
		"one value is every percentile":             {[]float64{7}, 99, 7},
		"nothing measured":                          {nil, 50, math.NaN()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := percentile(tc.values, tc.p)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("percentile (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMedianAndWorst(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		values     []float64
		wantMedian float64
		wantWorst  float64
	}{
		"odd":              {[]float64{9, 1, 5}, 5, 9},
		"even: the mean":   {[]float64{4, 1, 9, 2}, 3, 9},
		"one":              {[]float64{3}, 3, 3},
		"nothing measured": {nil, math.NaN(), math.NaN()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := []float64{median(tc.values), worst(tc.values)}
			want := []float64{tc.wantMedian, tc.wantWorst}
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("median, worst (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMedianLeavesTheOrderOfRounds(t *testing.T) {
	t.Parallel()
	rounds := []float64{3, 1, 2}
	_, _ = median(rounds), percentile(rounds, 50)
	if diff := cmp.Diff([]float64{3, 1, 2}, rounds); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
}

func TestRatiosPairRounds(t *testing.T) {
	t.Parallel()
	got := ratios([]float64{1, 10, 7}, []float64{2, 5})
	if diff := cmp.Diff([]float64{0.5, 2}, got); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
}

func TestMilliseconds(t *testing.T) {
	t.Parallel()
	got := milliseconds([]time.Duration{1500 * time.Microsecond, time.Second})
	if diff := cmp.Diff([]float64{1.5, 1000}, got); diff != "" {
		t.Errorf("milliseconds (-want +got):\n%s", diff)
	}
}
