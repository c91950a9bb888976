package redisstore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddresses(t *testing.T) {
	tests := map[string]address{
		"redis://redis":                      {network: "tcp", addr: "redis:6379"},
		"redis://10.0.0.1:6380/":             {network: "tcp", addr: "10.0.0.1:6380"},
		"redis://[::1]:6380/7":               {network: "tcp", addr: "[::1]:6380", db: 7},
		"redis://user:p%40ss@redis/2":        {network: "tcp", addr: "redis:6379", db: 2, username: "user", password: "p@ss"},
		"redis://:secret@redis":              {network: "tcp", addr: "redis:6379", password: "secret"},
		"unix:///run/redis.sock":             {network: "unix", addr: "/run/redis.sock"},
		"unix://:secret@/run/redis.sock?db=": {network: "unix", addr: "/run/redis.sock", password: "secret"},
		"unix:///run/redis.sock?db=3":        {network: "unix", addr: "/run/redis.sock", db: 3},
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			got, err := parseAddress(url)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(address{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadAddressesAreRefusedByTheirBadPartAlone(t *testing.T) {
	tests := map[string]string{
		"":                                   "unknown scheme",
		"redis":                              "unknown scheme",
		"localhost:6379":                     "unknown scheme",
		"http://:secret@redis":               "unknown scheme",
		"redis://:secret@":                   "the host is missing",
		"redis:secret":                       "the host is missing",
		"redis://:secret@redis:":             "",
		"redis://:secret@redis:0":            `port "0"`,
		"redis://:secret@redis:70000":        `port "70000"`,
		"redis://:secret@redis:port":         "malformed",
		"redis://user:secret%zz@redis":       "malformed",
		"redis://:secret@redis/one":          `database "one"`,
		"redis://:secret@redis/-1":           `database "-1"`,
		"redis://:secret@redis?pool=9":       `unknown option "pool"`,
		"redis://user:sec#ret@redis":         "malformed",
		"redis://:secret@redis#x":            "%23",
		"unix://:secret@run/redis.sock":      `host "run" does not belong there`,
		"unix://":                            "path is missing",
		"unix:///run/redis.sock?db=x":        `database "x"`,
		"unix:///run/redis.sock?database=1":  `unknown option "database"`,
		"rediss://:secret@redis":             "rediss:// is not supported yet",
		"redis+sentinel://:secret@a,b/main":  "redis+sentinel:// is not supported yet",
		"rediss+sentinel://:secret@a/main":   "rediss+sentinel:// is not supported yet",
		"redis+cluster://:secret@a:1,b:2":    "",
		"redis+cluster://:secret@redis:6379": "redis+cluster:// is not supported yet",
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			a, err := parseAddress(url)
			if err == nil {
				if want == "" {
					return
				}
				t.Fatalf("accepted as %+v", a)
			}
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec#") {
				t.Errorf("got %q, want it to contain %q and no password", err, want)
			}
		})
	}
}

func FuzzAddress(f *testing.F) {
	for _, url := range []string{
		"redis://u:MARK@h:1/2", "unix://u:MARK@/s?db=1", "redis://:MARK@[::1]", "redis://MARK@h#", "redis+cluster://:MARK@a:1,b:2",
		"redis://h?MARK", "\x00", "redis:MARK",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		a, err := parseAddress(url)
		if err == nil && (a.addr == "" || a.db < 0 || a.network != "tcp" && a.network != "unix") {
			t.Errorf("%q is accepted as %+v", url, a)
		}
		// What stands before the @ of a login is never repeated.
		login, _, found := strings.Cut(strings.TrimPrefix(url, "redis://"), "@")
		if _, password, ok := strings.Cut(login, ":"); found && err != nil && ok && len(password) > 3 && strings.Contains(err.Error(), password) {
			t.Errorf("the error for %q repeats the password: %v", url, err)
		}
	})
}
