package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	loadRequests    = 20_000
	loadConnections = 4
)

// weight is what a process costs.
type weight struct {
	rest, loaded memory
	cpu          time.Duration // of the load
}

// memory is in MB of 10^6 bytes.
type memory struct{ rss, anonymous float64 }

// weigh reads a process' memory after a rest, sends it the load at url (none if
// empty), and reads again after another rest.
func weigh(pid int, url string, restFor time.Duration) (w weight, err error) {
	time.Sleep(restFor)
	if w.rest, err = readMemory(pid); err != nil || url == "" {
		return w, err
	}
	before, err := readCPU(pid)
	if err != nil {
		return w, err
	}
	if err := burst(url); err != nil {
		return w, err
	}
	after, err := readCPU(pid)
	if err != nil {
		return w, err
	}
	w.cpu = after - before
	time.Sleep(restFor)
	w.loaded, err = readMemory(pid)
	return w, err
}

func megabytes(file string) (float64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / 1e6, nil
}

func readMemory(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	rss, errRSS := memoryField(string(text), "VmRSS")
	anonymous, errAnonymous := memoryField(string(text), "RssAnon")
	return memory{rss / 1e6, anonymous / 1e6}, errors.Join(errRSS, errAnonymous)
}

// readPeak is the most RSS that a process has had, in MB.
func readPeak(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	peak, err := memoryField(string(text), "VmHWM")
	return peak / 1e6, err
}

// readCPU is the processor time that a process has used so far, in steps of
// 10 ms.
func readCPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return cpuTime(string(text))
}

// cpuTime reads utime and stime from /proc/PID/stat: the 14th and 15th field,
// counting the program's name, which may have blanks and brackets of its own.
func cpuTime(stat string) (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat has too few fields: %q", stat)
	}
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, errors.Join(errUser, errSystem)
}

// memoryField reads a size in bytes from /proc/PID/status.
func memoryField(status, name string) (float64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		return float64(kib) * 1024, err
	}
	return 0, fmt.Errorf("no %s in /proc/PID/status", name)
}

// burst sends all requests, over connections that stay open.
func burst(url string) error {
	var all sync.WaitGroup
	failed := make(chan error, loadConnections)
	for range loadConnections {
		all.Go(func() {
			transport := &http.Transport{MaxConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for range loadRequests / loadConnections {
				if err := get(client, url); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func get(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
