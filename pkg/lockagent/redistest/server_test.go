package redistest

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"
)

func TestServerAnswersOnBothAddressesAndEnds(t *testing.T) {
	var s *Server
	t.Run("running", func(t *testing.T) {
		s = Start(t)
		for network, addr := range map[string]string{"tcp": s.Addr, "unix": s.Socket} {
			conn, err := net.Dial(network, addr)
			if err != nil {
				t.Errorf("dial %s: %v", network, err)
				continue
			}
			_ = conn.Close()
		}
	})
	if s == nil {
		t.Skip("no redis-server")
	}
	select {
	case <-s.done:
	default:
		t.Error("the server still runs after its test")
	}
	if _, err := os.Stat(s.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the server's folder is left: stat gives %v", err)
	}
}

func TestServerTakesConfigLines(t *testing.T) {
	s := Start(t, "requirepass secret")
	conn, err := net.Dial("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("DBSIZE\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	if err != nil {
		t.Fatal(err)
	}
	const want = "-NOAUTH"
	if got := string(reply[:min(n, len(want))]); got != want {
		t.Errorf("DBSIZE without a password answers %q, want %q", got, want)
	}
}
