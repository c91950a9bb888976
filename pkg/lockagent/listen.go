package lockagent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// The most connections at once, for each listener. An agent has 32 MiB.
const (
	apiConns   = 128
	probeConns = 32
)

// Listeners are the open doors of the agent.
type Listeners struct {
	api    []net.Listener
	probes net.Listener // nil without HOLDFAST_PROBE_LISTEN, or where that is a path
	asking net.Listener // for exec probes; nil unless HOLDFAST_PROBE_LISTEN is a path
}

// Listen opens every door or none. The socket comes first: where it answers
// already, another agent works in this folder, and the ports are not the problem.
func Listen(cfg agentenv.Config) (*Listeners, error) {
	ls := &Listeners{}
	if err := ls.open(cfg); err != nil {
		ls.Close()
		return nil, err
	}
	return ls, nil
}

func (ls *Listeners) open(cfg agentenv.Config) error {
	socket, err := listenSocket(filepath.Join(cfg.Dir, agentenv.SocketName))
	if err != nil {
		return fmt.Errorf("%s=%q: %w", agentenv.DirVar, cfg.Dir, err)
	}
	ls.api = append(ls.api, capConns(socket, apiConns))
	tcp, err := listenLoopback(cfg.Listen)
	for _, l := range tcp {
		ls.api = append(ls.api, capConns(l, apiConns))
	}
	if err != nil {
		return explain(agentenv.ListenVar, cfg.Listen, err)
	}
	return ls.openProbes(cfg)
}

func (ls *Listeners) openProbes(cfg agentenv.Config) error {
	switch {
	case cfg.ProbeListen == "":
		return nil
	case cfg.ExecProbes():
		asking, err := listenSocket(cfg.ProbeListen)
		if err != nil {
			return fmt.Errorf("%s=%q: %w", agentenv.ProbeListenVar, cfg.ProbeListen, err)
		}
		ls.asking = capConns(asking, probeConns)
		return nil
	}
	probes, err := net.Listen("tcp", cfg.ProbeListen)
	if err != nil {
		return explain(agentenv.ProbeListenVar, cfg.ProbeListen, err)
	}
	ls.probes = capConns(probes, probeConns)
	return nil
}

// Close closes every door that is open, and removes the socket.
func (ls *Listeners) Close() {
	for _, l := range slices.Concat(ls.api, []net.Listener{ls.probes, ls.asking}) {
		if l != nil {
			_ = l.Close()
		}
	}
}

// listenLoopback takes "localhost" for both loopback addresses; the second may
// be missing from the machine. It returns what is open also with an error. No
// address is no listener.
func listenLoopback(addr string) ([]net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host != "localhost" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	four, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	six, err := net.Listen("tcp6", net.JoinHostPort("::1", port))
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		return []net.Listener{four}, nil
	}
	if err != nil {
		return []net.Listener{four}, err
	}
	return []net.Listener{four, six}, nil
}

// listenSocket opens a socket for everyone: the app may run as any user, and who
// sees the folder is decided by the pod that mounts it. What an earlier process
// left there is in the way and goes.
func listenSocket(path string) (net.Listener, error) {
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = conn.Close()
		return nil, errors.New("another agent answers there: give each a folder of its own")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: it is where the agent's socket belongs; remove it, or set another folder", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// explain says which variable an address comes from and, for a port that is
// taken, by whom most likely and how to take another.
func explain(variable, addr string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s=%q: %w", variable, addr, err)
	}
	return fmt.Errorf("%s=%q: the port is taken, most likely by the app itself or, with hostNetwork, by another program of the node: "+
		"set the annotation holdfast.dev/agent-port to N where ports N and N+1 are free (%w)", variable, addr, err)
}
