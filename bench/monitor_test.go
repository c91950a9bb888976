package main

import "testing"

func TestMonitored(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		line   string
		want   string
		wantOK bool
	}{
		"from a client":          {`1790000000.000001 [0 127.0.0.1:40000] "EVALSHA" "abc" "1" "key"`, "evalsha", true},
		"from a unix socket":     {`1790000000.000001 [0 unix:/tmp/s.sock] "ping"`, "ping", true},
		"inside a script":        {`1790000000.000001 [0 lua] "GET" "key"`, "", false},
		"brackets in a value":    {`1790000000.000001 [0 127.0.0.1:40000] "set" "k] \"get" "v"`, "set", true},
		"the server's first +OK": {"+OK", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := monitored(tc.line)
			if got != tc.want || ok != tc.wantOK {
				t.Errorf("monitored(%s) = %q, %t, want %q, %t", tc.line, got, ok, tc.want, tc.wantOK)
			}
		})
	}
}
