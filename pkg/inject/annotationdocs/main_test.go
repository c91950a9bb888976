package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocsAreUpToDate(t *testing.T) {
	page, err := os.ReadFile("../../../docs/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := withTable(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(page)); diff != "" {
		t.Errorf("docs/annotations.md is stale; run go generate ./pkg/inject (-want +got):\n%s", diff)
	}
}

func TestPageWithoutAPlaceIsAnError(t *testing.T) {
	for _, page := range []string{"", begin, end, end + begin} {
		if _, err := withTable([]byte(page)); err == nil {
			t.Errorf("no error for %q", page)
		}
	}
}
