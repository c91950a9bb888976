package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Free ports are looked for below the range that outgoing connections use
// (net.ipv4.ip_local_port_range): one that is free now can then not be taken by
// somebody's connection while an agent restarts.
const lowestPort, highestPort = 20000, 31999

var portsGiven sync.Map // so that two pods never get the same one

// freePort finds a loopback port on which nobody listens.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		if _, given := portsGiven.LoadOrStore(port, true); !given {
			return port, nil
		}
	}
	return 0, errors.New("no free port between 20000 and 31999 on 127.0.0.1")
}

func freeAddress() (string, error) {
	port, err := freePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}
