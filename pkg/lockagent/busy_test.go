package lockagent

import (
	"testing"
	"testing/fstest"
)

func TestBusy(t *testing.T) {
	pressure := func(percent string) string {
		return "some avg10=" + percent + " avg60=98.13 avg300=97.68 total=8111911065\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	}
	for name, tc := range map[string]struct {
		cpu, io, load string
		want          bool
	}{
		"at rest":                      {pressure("9.99"), pressure("0.00"), "0.81 0.55 1.49 4/321 7\n", false},
		"waiting for CPU":              {pressure("10.00"), pressure("0.00"), "0.81 0.55 1.49 1/321 7\n", true},
		"waiting for a disk":           {pressure("0.00"), pressure("98.86"), "0.81 0.55 1.49 1/321 7\n", true},
		"since a moment":               {pressure("0.00"), pressure("0.00"), "0.81 0.55 1.49 5/321 7\n", true},
		"a kernel without pressure":    {"", "", "0.81 0.55 1.49 1/321 7\n", true},
		"a load that makes no sense":   {pressure("0.00"), pressure("0.00"), "none\n", true},
		"pressure that makes no sense": {"some\n", pressure("0.00"), "0.81 0.55 1.49 1/321 7\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			proc := fstest.MapFS{"loadavg": {Data: []byte(tc.load)}}
			if tc.cpu != "" {
				proc["pressure/cpu"] = &fstest.MapFile{Data: []byte(tc.cpu)}
				proc["pressure/io"] = &fstest.MapFile{Data: []byte(tc.io)}
			}
			if got := busy(proc, 2); got != tc.want {
				t.Errorf("busy = %t, want %t", got, tc.want)
			}
		})
	}
}
