package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// watchEvery is how often the table is drawn.
const watchEvery = 200 * time.Millisecond

var stateClient = &http.Client{Timeout: watchEvery}

// agentState asks p's agent what its app could ask it.
func agentState(ctx context.Context, p *pod) (*lockagent.State, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.apiURL()+"/v1/state", nil)
	if err != nil {
		return nil, err
	}
	response, err := stateClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /v1/state of %s: %s", p.object.Name, response.Status)
	}
	var s lockagent.State
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("GET /v1/state of %s: %w", p.object.Name, err)
	}
	return &s, nil
}

// rows is what the table says about all pods now.
func (d *demo) rows(ctx context.Context) []row {
	var rows []row
	for _, p := range d.cluster.shown() {
		r := row{pod: p.object.Name, phase: p.currentPhase(), lastLine: p.app.last()}
		switch r.phase {
		case phaseGone, phaseDone, phaseFailed:
		case phaseLost:
			r.left = d.stillLocked(ctx, p)
		default:
			r.state, _ = agentState(ctx, p) // nil says it
		}
		rows = append(rows, r)
	}
	return rows
}

// stillLocked is for how long Redis will keep the hold of a pod that is no more.
func (d *demo) stillLocked(ctx context.Context, p *pod) time.Duration {
	r, err := d.witness.read(ctx, p.lock)
	if err != nil || r.fence != p.lastToken.Load() {
		return 0 // unknown, or the next one has it
	}
	return r.left
}

// watch keeps the table up to date until ctx ends.
func (d *demo) watch(ctx context.Context) {
	for ctx.Err() == nil {
		rows := d.rows(ctx)
		if ctx.Err() == nil {
			d.screen.show(table(rows, time.Now()))
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
		}
	}
}
