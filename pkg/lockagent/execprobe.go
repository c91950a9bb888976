package lockagent

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// What is said on the socket of exec probes, in lines. The one who asks is a
// process that the kubelet has started in the agent's container, see [AskProbe].
//
//	start   is the agent up?                       answered with ok
//	live    need it not be restarted?              answered with ok, or why it must be
//	bye     the kubelet is about to hear that all is well; nothing follows
//	end     unasked: the agent ends, so there is nothing more to ask
const (
	probeStart = "start"
	probeLive  = "live"
	probeBye   = "bye"
	probeOK    = "ok"
	probeEnd   = "end"
)

// execProbes answers on that socket.
type execProbes struct {
	agent subject
	open  sync.WaitGroup // connections
}

// serve answers until the listener is closed. When ctx ends it says so to all who
// ask: killed with the agent's container, they would look to the kubelet, and to
// whoever reads the events, like probes that have failed.
func (p *execProbes) serve(ctx context.Context, l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		p.open.Go(func() { p.talk(ctx, conn) })
	}
}

// talk answers one process. One that goes without a bye got an answer too late,
// or was killed: whatever it was told, the kubelet takes it for a failure.
func (p *execProbes) talk(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { say(conn, probeEnd) })()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch lines.Text() {
		case probeStart:
			say(conn, probeOK)
		case probeLive:
			p.answerLive(conn)
		case probeBye:
			return
		}
	}
	if ctx.Err() == nil {
		p.agent.ProbeBroken()
	}
}

func (p *execProbes) answerLive(conn net.Conn) {
	if err := p.agent.Live(); err != nil {
		say(conn, err.Error())
		return
	}
	p.agent.Probed()
	say(conn, probeOK)
}

// awaitGone gives the processes that have been told of the end the time to go.
func (p *execProbes) awaitGone(patience time.Duration) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		p.open.Wait()
	}()
	select {
	case <-gone:
	case <-time.After(patience):
	}
}

// say writes one line. Who does not take it will be seen to have gone.
func say(conn net.Conn, line string) { _, _ = io.WriteString(conn, line+"\n") }
