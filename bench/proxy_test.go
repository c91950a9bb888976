package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// echo is a server that answers what it is sent.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	return l.Addr().String()
}

// talk tells whether what is said on conn comes back. Where it is to, it may
// take long on a busy machine; where not, it would be there at once.
func talk(t *testing.T, conn net.Conn, line string, want bool) bool {
	t.Helper()
	patience := 200 * time.Millisecond
	if want {
		patience = 10 * time.Second
	}
	if _, err := io.WriteString(conn, line); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(line))
	_, err := io.ReadFull(conn, got)
	return err == nil && string(got) == line
}

func dial(t *testing.T, p *proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestProxyFailsWhereItIsTold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault                 verdict
		wantReply             bool // to the request that meets the fault
		wantSame, wantAnother bool // later, on the same connection and on another
	}{
		"a lost reply hangs one connection":    {hang, false, false, true},
		"a black hole comes after the reply":   {silence, true, false, false},
		"without a fault everything goes well": {pass, true, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := startProxy(echo(t), func(x exchange) verdict {
				if strings.HasPrefix(string(x.reply), "fault") {
					return tc.fault
				}
				return pass
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.close)
			first, second := dial(t, p), dial(t, p)
			for _, say := range []struct {
				what string
				conn net.Conn
				want bool
			}{
				{"fault", first, tc.wantReply},
				{"later, on the same connection", first, tc.wantSame},
				{"on another connection", second, tc.wantAnother},
			} {
				if got := talk(t, say.conn, say.what, say.want); got != say.want {
					t.Errorf("reply to %q: %t, want %t", say.what, got, say.want)
				}
			}
		})
	}
}

func TestRanScript(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		x    exchange
		want bool
	}{
		"a script":       {exchange{request: []byte("*3\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n0\r\n"), reply: []byte("*1\r\n:1\r\n")}, true},
		"not loaded yet": {exchange{request: []byte("*3\r\n$7\r\nevalsha\r\n$2\r\nab\r\n$1\r\n0\r\n"), reply: []byte("-NOSCRIPT")}, false},
		"another":        {exchange{request: []byte("*1\r\n$4\r\nping\r\n"), reply: []byte("+PONG\r\n")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.x.ranScript(); got != tc.want {
				t.Errorf("ranScript() = %t, want %t", got, tc.want)
			}
		})
	}
}
