package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// command is what a container, or one of the demo's own servers, runs.
type command struct {
	argv   []string
	dir    string   // working directory
	env    []string // the whole environment
	output io.Writer
}

// processes starts processes and knows those that are still there, so that the
// demo can end them all, and only them, however it ends itself.
type processes struct {
	mu      sync.Mutex
	running map[*process]bool
	closed  bool
}

// newProcesses makes this process the parent of orphans below it, as a
// container's supervisor does, so that it can tell when the last one is gone.
func newProcesses() (*processes, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("adopt orphaned processes: %w", err)
	}
	return &processes{running: map[*process]bool{}}, nil
}

// process is a command in a process group of its own. As in a container, its
// first process stands for all: when that ends, the rest is killed.
type process struct {
	group  int
	owner  *processes
	ended  chan struct{} // closed once the last process of the group is gone
	exit   int           // after ended: the exit code, -1 after a signal
	reaped bool          // under owner.mu: group may be somebody else's by now
}

// start runs c. It also ends if the demo is killed.
func (ps *processes) start(c command) (*process, error) {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = c.output, c.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // for output held open by one that left the group

	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed {
		return nil, errors.New("start " + c.argv[0] + ": the demo is ending")
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{group: cmd.Process.Pid, owner: ps, ended: make(chan struct{})}
	ps.running[p] = true
	go p.reap(cmd)
	return p, nil
}

// reap waits for the first process and ends the others. Its number is theirs,
// and nobody else's, until it has been waited for, so it comes last but for
// orphans; and nothing can start meanwhile that would get the number again.
func (p *process) reap(cmd *exec.Cmd) {
	// It cannot fail: the process is ours, and nobody else waits for it.
	_ = retryInterrupted(func() error { return unix.Waitid(unix.P_PID, p.group, nil, unix.WEXITED|unix.WNOWAIT, nil) })

	p.owner.mu.Lock()
	_ = syscall.Kill(-p.group, syscall.SIGKILL)
	state, _ := cmd.Process.Wait()
	for more := true; more; {
		more = retryInterrupted(func() error { _, err := unix.Wait4(-p.group, nil, 0, nil); return err }) == nil
	}
	p.reaped = true
	delete(p.owner.running, p)
	p.owner.mu.Unlock()

	_ = cmd.Wait() // for the rest of the output
	p.exit = state.ExitCode()
	close(p.ended)
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// terminate sends TERM to the first process, as a container runtime does.
func (p *process) terminate() { p.signal(p.group, syscall.SIGTERM) }

// kill ends the whole group at once.
func (p *process) kill() { p.signal(-p.group, syscall.SIGKILL) }

func (p *process) signal(to int, s syscall.Signal) {
	p.owner.mu.Lock()
	defer p.owner.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(to, s)
	}
}

// stop sends TERM, after grace KILL, and returns once the process is gone.
func (p *process) stop(grace time.Duration) {
	p.terminate()
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.kill()
		<-p.ended
	}
}

// killAll ends everything that is still there, and lets nothing new start.
func (ps *processes) killAll() {
	ps.mu.Lock()
	ps.closed = true
	left := make([]*process, 0, len(ps.running))
	for p := range ps.running {
		left = append(left, p)
	}
	ps.mu.Unlock()
	for _, p := range left {
		p.kill()
	}
	for _, p := range left {
		<-p.ended
	}
}

// run starts c, waits for its end, and fails unless it ended with 0. When stop
// is closed first, it is killed.
func (ps *processes) run(c command, stop <-chan struct{}) error {
	p, err := ps.start(c)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-stop:
		p.kill()
		<-p.ended
	}
	if p.exit != 0 {
		return fmt.Errorf("%s: exit code %d", c.argv[0], p.exit)
	}
	return nil
}
