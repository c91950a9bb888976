package lockagent

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// probeAnswer is how long an exec probe waits for an answer, as the kubelet does
// for that of an HTTP probe.
const probeAnswer = time.Second

// AskProbe asks the agent at its socket for exec probes whether it is well, and
// returns at once if it is not. Otherwise it goes on asking every so often until
// lasting is over; with zero, it asks only once, and only whether the agent is up.
// It also returns nil as soon as the agent says that it ends.
func AskProbe(socket string, lasting, every time.Duration) error {
	conn, err := net.DialTimeout("unix", socket, probeAnswer)
	if err != nil {
		return fmt.Errorf("no agent answers: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := askProbe(conn, lasting, every); err != nil {
		return err
	}
	say(conn, probeBye)
	return nil
}

func askProbe(conn net.Conn, lasting, every time.Duration) error {
	question := probeLive
	if lasting == 0 {
		question = probeStart
	}
	answers := bufio.NewReader(conn)
	end := time.Now().Add(lasting)
	for {
		say(conn, question)
		answer, err := hear(conn, answers, probeAnswer)
		switch {
		case err != nil:
			return fmt.Errorf("no answer: %w", err)
		case answer == probeEnd:
			return nil
		case answer != probeOK:
			return errors.New(answer)
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		answer, err = hear(conn, answers, min(left, every))
		switch {
		case answer == probeEnd:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the agent has gone: %w", err)
		}
	}
}

// hear reads a line, should one come within patience.
func hear(conn net.Conn, lines *bufio.Reader, patience time.Duration) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	line, err := lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
