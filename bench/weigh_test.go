package main

import (
	"testing"
	"time"
)

func TestMemoryField(t *testing.T) {
	t.Parallel()
	const status = "Name:\tholdfast-agent\nVmRSS:\t    7812 kB\nRssAnon:\t    1200 kB\nRssFile:\t    6612 kB\n"
	cases := map[string]struct {
		field   string
		want    float64
		wantErr bool
	}{
		"a field":         {field: "RssAnon", want: 1200 * 1024},
		"no such field":   {field: "VmHWM", wantErr: true},
		"only its ending": {field: "Anon", wantErr: true},
		"not a size":      {field: "Name", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := memoryField(status, tc.field)
			if (err != nil) != tc.wantErr || err == nil && got != tc.want {
				t.Errorf("memoryField(%s) = %v, %v, want %v, error: %t", tc.field, got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestCPUTime(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		stat    string
		want    time.Duration
		wantErr bool
	}{
		"user and system time": {stat: "7 (agent) S 1 7 7 0 -1 4194560 900 0 0 0 12 5 0 0 20 0 6 0 100", want: 170 * time.Millisecond},
		"a name with blanks":   {stat: "7 (a) b) S 1 7 7 0 -1 4194560 900 0 0 0 1 2 0 0 20 0 6 0 100", want: 30 * time.Millisecond},
		"cut short":            {stat: "7 (agent) S 1 7", wantErr: true},
		"empty":                {wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cpuTime(tc.stat)
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("cpuTime(%q) = %v, %v, want %v, error: %t", tc.stat, got, err, tc.want, tc.wantErr)
			}
		})
	}
}
