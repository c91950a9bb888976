package lockagent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// doors opens a config's listeners, in a folder whose path fits a socket.
func doors(t *testing.T, cfg agentenv.Config) (*Listeners, error) {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = shortDir(t)
	}
	ls, err := Listen(cfg)
	if err == nil {
		t.Cleanup(ls.Close)
	}
	return ls, err
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// get asks over one listener, whatever the URL says.
func get(l net.Addr, path string) (*http.Response, error) {
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, l.Network(), l.String())
		},
	}}
	return c.Get("http://localhost" + path)
}

func TestEveryDoorAnswers(t *testing.T) {
	defer goleak.VerifyNone(t)
	ls, err := doors(t, agentenv.Config{Listen: "127.0.0.1:0", ProbeListen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	stop := serve(ls, newFakeSubject(), slog.New(slog.DiscardHandler))
	defer stop()
	for _, tc := range []struct {
		door net.Listener
		path string
		want int
	}{
		{ls.api[0], "/v1/held", 503},
		{ls.api[1], "/v1/held", 503},
		{ls.probes, "/v1/held", 404},
		{ls.probes, "/startz", 200},
	} {
		resp, err := get(tc.door.Addr(), tc.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s %s = %d, want %d", tc.door.Addr(), tc.path, resp.StatusCode, tc.want)
		}
	}
}

// The end of the agent answers those who wait, instead of hanging up on them or
// waiting for them.
func TestStopAnswersLongPolls(t *testing.T) {
	defer goleak.VerifyNone(t)
	ls, err := doors(t, agentenv.Config{})
	if err != nil {
		t.Fatal(err)
	}
	agent := newFakeSubject()
	asked := make(chan struct{})
	stop := serve(ls, &askedSubject{agent, asked}, slog.New(slog.DiscardHandler))
	answer := make(chan int)
	go func() {
		resp, err := get(ls.api[0].Addr(), "/v1/held?wait=60s")
		if err != nil {
			answer <- 0
			return
		}
		_ = resp.Body.Close()
		answer <- resp.StatusCode
	}()
	<-asked
	stop()
	if got := <-answer; got != 503 {
		t.Errorf("long poll at the end = %d, want 503", got)
	}
}

// askedSubject tells when a request has reached it.
type askedSubject struct {
	*fakeSubject
	asked chan struct{}
}

func (a *askedSubject) Status() *Status {
	close(a.asked)
	return a.fakeSubject.Status()
}

func TestSocketIsOpenToEveryUser(t *testing.T) {
	dir := shortDir(t)
	if err := os.WriteFile(filepath.Join(dir, agentenv.SocketName), nil, 0o600); err != nil { // what a crash leaves, or worse
		t.Fatal(err)
	}
	if _, err := doors(t, agentenv.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(filepath.Join(dir, agentenv.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode() != os.ModeSocket|0o666 {
		t.Errorf("mode = %v, want a socket that all may write to", fi.Mode())
	}
}

// The API is on all loopbacks that there are, and the probes on all addresses: pods
// may have IPv4, IPv6 or both.
func TestListensInAllFamiliesThatThereAre(t *testing.T) {
	for name, tc := range map[string]struct {
		ipv6       bool
		wantAPI    string
		wantProbes []string // addresses that answer
	}{
		"both": {true, "127.0.0.1:8650 [::1]:8650", []string{"127.0.0.1:8651", "[::1]:8651"}},
		"IPv4": {false, "127.0.0.1:8650", []string{"127.0.0.1:8651"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := agentenv.Default()
			cfg.Dir = shortDir(t)
			inOwnNetwork(t, tc.ipv6, func() { listensAt(t, cfg, tc.wantAPI, tc.wantProbes) })
		})
	}
}

func listensAt(t *testing.T, cfg agentenv.Config, wantAPI string, wantProbes []string) {
	ls, err := Listen(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	defer ls.Close()
	var api []string
	for _, l := range ls.api[1:] { // after the socket
		api = append(api, l.Addr().String())
	}
	if got := strings.Join(api, " "); got != wantAPI {
		t.Errorf("the API is at %s, want %s", got, wantAPI)
	}
	for _, address := range wantProbes {
		if err := reach(address); err != nil {
			t.Errorf("probes: %v", err)
		}
	}
}

// reach connects to a literal address on the calling thread's own network, which a
// dialer that tries several addresses at once would leave.
func reach(address string) error {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// The port may be the app's own, or on hostNetwork anyone's: say which, and what
// to do (ptp-operator PR#133, telepresence#2704).
func TestCaseB50PortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	addr := taken.Addr().String()
	for variable, cfg := range map[string]agentenv.Config{
		agentenv.ListenVar:      {Listen: addr},
		agentenv.ProbeListenVar: {ProbeListen: addr},
	} {
		_, err := doors(t, cfg)
		if err == nil {
			t.Fatalf("%s=%s: no error for a port that is taken", variable, addr)
		}
		for _, want := range []string{variable, addr, "holdfast.dev/agent-port"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q, want it to name %s", err, want)
			}
		}
	}
	if _, err := doors(t, agentenv.Config{}); err != nil {
		t.Errorf("without any port: %v, want the socket alone", err)
	}
}

func TestAddressWithoutPort(t *testing.T) {
	_, err := doors(t, agentenv.Config{Listen: "127.0.0.1"})
	if err == nil || !strings.Contains(err.Error(), `HOLDFAST_LISTEN="127.0.0.1"`) {
		t.Errorf("error %v, want one that names the variable and its value", err)
	}
}

func TestTwoAgentsInOneFolder(t *testing.T) {
	cfg := agentenv.Config{Dir: shortDir(t)}
	if _, err := doors(t, cfg); err != nil {
		t.Fatal(err)
	}
	_, err := doors(t, cfg)
	if err == nil || !strings.Contains(err.Error(), "another agent") {
		t.Errorf("error %v, want one about another agent", err)
	}
}

// Strangers that keep connections open must not shut the kubelet out: it would
// kill the agent.
func TestProbesStayReachableForTheKubelet(t *testing.T) {
	defer goleak.VerifyNone(t)
	ls, err := doors(t, agentenv.Config{ProbeListen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	stop := serve(ls, newFakeSubject(), slog.New(slog.DiscardHandler))
	defer stop()
	addr := ls.probes.Addr()
	var strangers []net.Conn
	for i := range 2 * probeConns {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		request := "GET /startz HTTP/1.1\r\nHost: x\r\n\r\n" // answered, then idle
		if i%2 == 1 {
			request = "GET /startz HTTP/1.1\r\n" // never ends
		}
		if _, err := io.WriteString(c, request); err != nil && i < probeConns {
			t.Fatal(err)
		}
		strangers = append(strangers, c)
	}
	resp, err := get(addr, "/livez")
	if err != nil {
		t.Fatalf("the kubelet is shut out: %v", err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/livez = %d, want 200", resp.StatusCode)
	}
	_ = strangers[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, strangers[0]); os.IsTimeout(err) {
		t.Errorf("the oldest connection is still open: %v", err)
	}
}
