package redisstore_test

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/redisstore"
)

// A request that nobody waits for any more must not arrive minutes later, when
// the owner has another idea of its hold: with the connection's end, what the
// system has not delivered yet is to be thrown away, which the other end sees as
// a reset.
func TestAbandonedRequestIsThrownAway(t *testing.T) {
	ended := make(chan error, 1)
	addr := serve(t, func(conn net.Conn) {
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
			return
		}
		for { // reads all, and answers nothing
			if _, err := conn.Read(make([]byte, 1<<10)); err != nil {
				ended <- err
				return
			}
		}
	})
	store := open(t, redisstore.Options{URL: "redis://" + addr, TTL: 120 * time.Millisecond})
	if _, err := store.Release(t.Context(), claim("a", 1)); err == nil {
		t.Fatal("released by a server that does not answer")
	}
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want it reset", err)
	}
}

// serve runs a TCP server that does one thing with each connection.
func serve(t *testing.T, do func(net.Conn)) (addr string) {
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
			go func() {
				defer func() { _ = conn.Close() }()
				do(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// A proxy that confirms a subscription and then ends the connection, again and
// again, must not be called in a hot loop.
func TestSubscriptionThatNeverLastsIsNotRenewedInAHotLoop(t *testing.T) {
	var confirmed atomic.Int64
	addr := serve(t, func(conn net.Conn) { confirmOnce(conn, &confirmed) })
	store := open(t, redisstore.Options{URL: "redis://" + addr})
	wakes := listen(t, store, claim("a", 1))
	for end, over := time.After(500*time.Millisecond), false; !over; {
		select {
		case <-wakes:
		case <-end:
			over = true
		}
	}
	if n := confirmed.Load(); n < 2 || n > 30 {
		t.Errorf("%d subscriptions in half a second, want a few", n)
	}
}

// confirmOnce plays Redis until it has confirmed a subscription.
func confirmOnce(conn net.Conn, confirmed *atomic.Int64) {
	answers := map[string]string{
		"hello":     "-ERR unknown command\r\n",
		"info":      "-ERR unknown command\r\n",
		"subscribe": "*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n",
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		command := strings.ToLower(lines.Text())
		_, _ = conn.Write([]byte(answers[command]))
		if command == "subscribe" {
			confirmed.Add(1)
			return
		}
	}
}
