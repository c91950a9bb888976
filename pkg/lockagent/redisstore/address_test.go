package redisstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddresses(t *testing.T) {
	tcp := func(a address, hosts ...string) address {
		a.network, a.hosts = "tcp", hosts
		return a
	}
	tests := map[string]address{
		"redis://redis":                      tcp(address{}, "redis:6379"),
		"redis://10.0.0.1:6380/":             tcp(address{}, "10.0.0.1:6380"),
		"redis://[::1]:6380/7":               tcp(address{db: 7}, "[::1]:6380"),
		"redis://user:p%40ss@redis/2":        tcp(address{db: 2, username: "user", password: "p@ss"}, "redis:6379"),
		"redis://:secret@redis":              tcp(address{password: "secret"}, "redis:6379"),
		"redis://:a,b@redis":                 tcp(address{password: "a,b"}, "redis:6379"),
		"rediss://redis":                     tcp(address{tls: true}, "redis:6379"),
		"rediss://10.0.0.1?server-name=r.ex": tcp(address{tls: true, serverName: "r.ex"}, "10.0.0.1:6379"),
		"unix:///run/redis.sock":             {network: "unix", hosts: []string{"/run/redis.sock"}},
		"unix://:secret@/run/redis.sock?db=": {network: "unix", hosts: []string{"/run/redis.sock"}, password: "secret"},
		"unix:///run/redis.sock?db=3":        {network: "unix", hosts: []string{"/run/redis.sock"}, db: 3},
		"redis+sentinel://a/main":            tcp(address{form: sentinel, master: "main"}, "a:26379"),
		"redis+sentinel://u:p@a:1,b/main/2":  tcp(address{form: sentinel, master: "main", db: 2, username: "u", password: "p"}, "a:1", "b:26379"),
		"rediss+sentinel://a,[::1]:2/main/":  tcp(address{form: sentinel, master: "main", tls: true}, "a:26379", "[::1]:2"),
		"redis+cluster://:secret@a:1,b:2":    tcp(address{form: cluster, password: "secret"}, "a:1", "b:2"),
		"rediss+cluster://[::1]:1,[::2]/0":   tcp(address{form: cluster, tls: true}, "[::1]:1", "[::2]:6379"),
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
		"":                                  "unknown scheme",
		"redis":                             "unknown scheme",
		"localhost:6379":                    "unknown scheme",
		"http://:secret@redis":              "unknown scheme",
		"redis+ring://:secret@redis":        "unknown scheme",
		"redis://:secret@":                  "the host is missing",
		"redis:secret":                      "the host is missing",
		"redis://:secret@redis:0":           `port "0"`,
		"redis://:secret@redis:70000":       `port "70000"`,
		"redis://:secret@redis:port":        "malformed",
		"redis://user:secret%zz@redis":      "malformed",
		"redis://:secret@redis/one":         `database "one"`,
		"redis://:secret@redis/-1":          `database "-1"`,
		"redis://:secret@redis?pool=9":      `unknown option "pool"`,
		"redis://:secret@r?server-name=x":   `unknown option "server-name"`,
		"redis://user:sec#ret@redis":        "malformed",
		"redis://:secret@redis#x":           "%23",
		"redis://:secret@a,b":               "redis:// has one host, and this has 2",
		"unix://:secret@run/redis.sock":     `host "run" does not belong there`,
		"unix://":                           "path is missing",
		"unix:///run/redis.sock?db=x":       `database "x"`,
		"unix:///run/redis.sock?database=1": `unknown option "database"`,
		"redis+sentinel://:secret@a":        "the name by which the Sentinels know the primary",
		"redis+sentinel://:secret@a//2":     "the name by which the Sentinels know the primary",
		"redis+sentinel://:secret@a/main/x": `database "x"`,
		"redis+sentinel://:secret@a,/main":  "the host is missing",
		"redis+sentinel://:secret@a,b:0/m":  `port "0"`,
		"redis+cluster://:secret@a:1,b:x":   "malformed",
		"redis+cluster://:secret@a:1,b:2/1": `database "1": a cluster has only 0`,
		"redis+cluster://:secret@a,b/s@c":   `"@" behind the host`,
		"rediss+cluster://:secret@a?tls=no": `unknown option "tls"`,
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			a, err := parseAddress(url)
			if err == nil {
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
		"redis://h?MARK", "\x00", "redis:MARK", "rediss://:MARK@h?server-name=n", "redis+sentinel://u:MARK@a:1,[::1]/m/2",
		"rediss+sentinel://u:MA/RK@a,b/m", "rediss+cluster://:MARK,x@a,b:0", "redis+sentinel://:MARK@a,,b/m@n",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		a, err := parseAddress(url)
		if err == nil && !whole(a) {
			t.Errorf("%q is accepted as %+v", url, a)
		}
		// What stands before the @ of a login is never repeated.
		_, rest, _ := strings.Cut(url, "://")
		login, _, found := strings.Cut(rest, "@")
		if _, password, ok := strings.Cut(login, ":"); found && err != nil && ok && len(password) > 3 && strings.Contains(err.Error(), password) {
			t.Errorf("the error for %q repeats the password: %v", url, err)
		}
	})
}

// whole tells whether an address says all that is needed to connect to it.
func whole(a address) bool {
	if len(a.hosts) == 0 || slices.Contains(a.hosts, "") || a.db < 0 || a.network != "tcp" && a.network != "unix" {
		return false
	}
	return (a.form == sentinel) == (a.master != "") && (a.form != single || len(a.hosts) == 1) && (a.form != cluster || a.db == 0)
}
