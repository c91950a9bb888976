package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The demo plays with what is really there.
func TestLoadSamplesOfThisRepository(t *testing.T) {
	samples, err := loadSamples("../../" + samplesDir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range samples {
		got[s.kind]++
		if len(s.annotations()) == 0 {
			t.Errorf("%s: the pods of %s %s have no annotation of Holdfast's", s.file, s.kind, s.name)
		}
	}
	if diff := cmp.Diff(map[string]int{"Deployment": 1, "Job": 5, "CronJob": 2}, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if samples[0].kind != "Deployment" {
		t.Errorf("the first sample is a %s, want the Deployment", samples[0].kind)
	}
}

func TestParseSamples(t *testing.T) {
	const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  template:
    metadata:
      annotations:
        holdfast.dev/permits: "2"
        holdfast.dev/semaphore: warehouse
        example.com/owner: us
`
	cases := map[string]struct {
		yaml    string
		want    [][]string // annotations of each
		wantErr string
	}{
		"its annotations, the lock's name first": {
			yaml: job,
			want: [][]string{{"holdfast.dev/semaphore: warehouse", `holdfast.dev/permits: "2"`}},
		},
		"other kinds are passed over": {
			yaml: "kind: Namespace\nmetadata: {name: x}\n---" + job + "---\n# nothing here\n",
			want: [][]string{{"holdfast.dev/semaphore: warehouse", `holdfast.dev/permits: "2"`}},
		},
		"a field that does not exist": {
			yaml:    strings.Replace(job, "template:", "templates: {}\n  template:", 1),
			wantErr: `Job report: error unmarshaling JSON: while decoding JSON: json: unknown field "templates"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			samples, err := parseSamples("f.yaml", []byte(tc.yaml))
			if diff := cmp.Diff(tc.wantErr, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			var got [][]string
			for _, s := range samples {
				got = append(got, s.annotations())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
