package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// journal is one process' file.
type journal struct {
	file *os.File
	size int64
}

func open(name string) *journal {
	f, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	j := &journal{file: f}
	j.size = int64(j.put(0, line(boot())))
	return j
}

// alive notes that the process is there now.
func (j *journal) alive() { j.put(0, line(boot())) }

// write appends an event.
func (j *journal) write(event, detail string) {
	now := boot()
	j.size += int64(j.put(j.size, fmt.Sprintf("%d %s %s\n", now, event, detail)))
	j.put(0, line(now))
}

func (j *journal) put(at int64, text string) int {
	n, err := j.file.WriteAt([]byte(text), at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return n
}

// line has the same length for every time, so that it can be written over.
func line(t time.Duration) string { return fmt.Sprintf("%020d\n", t) }
