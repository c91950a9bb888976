package inject

import (
	"fmt"
	"path"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// probeSocket is in the agent's own folder, which no other container sees.
const probeSocket = "probe.sock"

// listen is where the agent answers the app besides at its socket. See
// [agentenv.Config].
func (r *Request) listen() string {
	if r.HostNetwork {
		return ""
	}
	return fmt.Sprintf("localhost:%d", r.Port)
}

// probeListen is where it answers the kubelet.
func (r *Request) probeListen() string {
	if r.Probe == ProbeExec {
		return path.Join(r.Agent.StateDir, probeSocket)
	}
	return fmt.Sprintf(":%d", r.Port+1)
}

// apiURL is where the app finds the agent.
func (r *Request) apiURL() string {
	if r.HostNetwork {
		return "unix://" + path.Join(r.Agent.Dir, agentenv.SocketName)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", r.Port)
}

// ports are those that the agent needs for itself.
func (r *Request) ports() []int32 {
	api := int32(r.Port)
	switch {
	case r.HostNetwork:
		return nil
	case r.Probe == ProbeExec:
		return []int32{api}
	}
	return []int32{api, api + 1}
}
