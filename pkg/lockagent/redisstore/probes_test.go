package redisstore

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var commandOf = regexp.MustCompile(`call\(\s*'([A-Z]+)'`)

// Whoever uses one more command in a script has to say so in probes.
func TestTheProbeKnowsEachCommandOfTheScripts(t *testing.T) {
	known, used := map[string]bool{}, map[string]string{}
	for _, p := range probes {
		name, _, _ := strings.Cut(p.(string), " ")
		known[name] = true
	}
	files, err := fs.Glob(os.DirFS("lua"), "*.lua")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile("lua/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandOf.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = file
		}
	}
	for name, file := range used {
		if !known[name] {
			t.Errorf("%s uses %s: add it to probes, and to the ACL of docs/redis.md", file, name)
		}
	}
	for name := range known {
		if used[name] == "" {
			t.Errorf("no script uses %s: remove it from probes", name)
		}
	}
}

func TestVersionsThatAreTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"6.0.16": true, "6": false, "5.9": true, "6.2.0": false, "6.10": false, "7.0.15": false, "10.1": false, "255.255.255": false, "": false, "unknown": false,
	} {
		if got := older(version, oldest); got != want {
			t.Errorf("%q older than %s: %t, want %t", version, oldest, got, want)
		}
	}
}
